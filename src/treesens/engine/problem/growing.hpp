// An array that grows in place: a vector grows by a copy, for which both must fit, while the allocator moves pages. For
// tables that take most of a search's memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace treesens {

template <typename T>
class Growing {
    static_assert(std::is_trivially_copyable_v<T>, "elements are moved as bytes");

public:
    Growing() = default;
    Growing(Growing&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          room_(std::exchange(other.room_, 0)) {}
    Growing& operator=(Growing&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(room_, other.room_);
        return *this;
    }
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;
    ~Growing() { std::free(data_); }

    std::size_t size() const { return size_; }
    const T* data() const { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    // Throws std::bad_alloc.
    void push_back(T element) {
        if (size_ == room_) grow(room_ == 0 ? 64 : room_ + room_ / 2);
        data_[size_++] = element;
    }
    // Reserves room for this many more elements, uninitialised. Throws std::bad_alloc.
    T* extend(std::size_t count) {
        if (room_ - size_ < count) grow(std::max(size_ + count, room_ + room_ / 2));
        size_ += count;
        return data_ + (size_ - count);
    }
    // Returns memory reserved beyond the elements.
    void shrink_to_fit() {
        if (size_ > 0 && size_ < room_) grow(size_);
    }

private:
    void grow(std::size_t room) {
        void* moved = std::realloc(data_, room * sizeof(T));
        if (moved == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(moved);
        room_ = room;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t room_ = 0;
};

}  // namespace treesens
