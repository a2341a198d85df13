(* Lists whose places are numbered by integers, and sums over their places. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Export Sums.
Import ListNotations.
Open Scope Z_scope.

(* The element number i, from 0. *)
Fixpoint at_index {A : Type} (l : list A) (i : Z) : option A :=
  match l with
  | [] => None
  | a :: rest => if i =? 0 then Some a else at_index rest (i - 1)
  end.

(* The list with another element number i; none if there is no such place. *)
Fixpoint replace {A : Type} (l : list A) (i : Z) (new : A) : option (list A) :=
  match l with
  | [] => None
  | a :: rest =>
      if i =? 0 then Some (new :: rest)
      else match replace rest (i - 1) new with Some changed => Some (a :: changed) | None => None end
  end.

Lemma at_replace : forall (A : Type) (l : list A) i new changed k,
  replace l i new = Some changed -> at_index changed k = if k =? i then Some new else at_index l k.
Proof.
  induction l as [|a l IH]; simpl; intros i new changed k H; [discriminate|].
  destruct (Z.eqb_spec i 0) as [->|N].
  - injection H as <-. simpl. destruct (k =? 0); reflexivity.
  - destruct (replace l (i - 1) new) as [c|] eqn:E; [|discriminate]. injection H as <-. simpl.
    destruct (Z.eqb_spec k 0) as [->|K].
    + destruct (Z.eqb_spec 0 i); [lia|reflexivity].
    + rewrite (IH _ _ _ (k - 1) E).
      destruct (Z.eqb_spec (k - 1) (i - 1)); destruct (Z.eqb_spec k i); try lia; reflexivity.
Qed.

Lemma replace_finds : forall (A : Type) (l : list A) i old new,
  at_index l i = Some old -> exists changed, replace l i new = Some changed.
Proof.
  induction l as [|a l IH]; simpl; intros i old new H; [discriminate|].
  destruct (i =? 0); [eauto|]. destruct (IH _ _ new H) as [c ->]. eauto.
Qed.

(* A sum over the places of a list, from number `from` on. *)
Fixpoint sum_from {A : Type} (f : Z -> A -> Z) (from : Z) (l : list A) : Z :=
  match l with [] => 0 | a :: rest => f from a + sum_from f (from + 1) rest end.

Lemma sum_from_replace : forall (A : Type) (f : Z -> A -> Z) l i old new changed from,
  at_index l i = Some old -> replace l i new = Some changed ->
  sum_from f from changed = sum_from f from l + f (from + i) new - f (from + i) old.
Proof.
  induction l as [|a l IH]; simpl; intros i old new changed from O R; [discriminate|].
  destruct (Z.eqb_spec i 0) as [->|N].
  - injection O as <-. injection R as <-. simpl. rewrite Z.add_0_r. lia.
  - destruct (replace l (i - 1) new) as [c|] eqn:E; [|discriminate]. injection R as <-. simpl.
    rewrite (IH _ _ _ _ (from + 1) O E). replace (from + 1 + (i - 1)) with (from + i) by lia. lia.
Qed.

Lemma sum_from_ext : forall (A : Type) (f g : Z -> A -> Z) l from,
  (forall i a, f i a = g i a) -> sum_from f from l = sum_from g from l.
Proof. induction l; simpl; intros; [reflexivity|]. rewrite H, (IHl (from + 1)); auto. Qed.

Lemma sum_from_zero : forall (A : Type) (f : Z -> A -> Z) l from,
  (forall i a, In a l -> f i a = 0) -> sum_from f from l = 0.
Proof. induction l; simpl; intros; [reflexivity|]. rewrite H, (IHl (from + 1)); auto. Qed.

(* The same by natural numbers, for short lists. *)
Fixpoint set_nth {A : Type} (j : nat) (new : A) (l : list A) : list A :=
  match l, j with
  | [], _ => []
  | _ :: rest, O => new :: rest
  | a :: rest, S i => a :: set_nth i new rest
  end.

Lemma nth_set_nth : forall (A : Type) (l : list A) j new i,
  nth_error (set_nth j new l) i = if Nat.eqb i j then match nth_error l j with Some _ => Some new | None => None end
                                  else nth_error l i.
Proof.
  induction l as [|a l IH]; intros [|j] new [|i]; simpl; auto.
  - destruct (Nat.eqb i j); reflexivity.
Qed.

(* At which place a number stands first. *)
Fixpoint index_of (v : Z) (l : list Z) : option nat :=
  match l with
  | [] => None
  | w :: rest => if w =? v then Some O else match index_of v rest with Some j => Some (S j) | None => None end
  end.

Lemma nth_index_of : forall v l j, index_of v l = Some j -> nth_error l j = Some v.
Proof.
  induction l as [|w l IH]; simpl; intros j H; [discriminate|].
  destruct (Z.eqb_spec w v) as [->|N].
  - injection H as <-. reflexivity.
  - destruct (index_of v l) as [i|]; [|discriminate]. injection H as <-. simpl. auto.
Qed.

Fixpoint options {A : Type} (l : list (option A)) : option (list A) :=
  match l with
  | [] => Some []
  | Some a :: rest => match options rest with Some found => Some (a :: found) | None => None end
  | None :: _ => None
  end.

Lemma options_map : forall (A B : Type) (f : A -> option B) l found,
  options (map f l) = Some found -> Forall2 (fun a b => f a = Some b) l found.
Proof.
  induction l as [|a l IH]; simpl; intros found H.
  - injection H as <-. constructor.
  - destruct (f a) as [b|] eqn:E; [|discriminate]. destruct (options (map f l)) as [r|]; [|discriminate].
    injection H as <-. constructor; auto.
Qed.

Lemma at_index_not_negative : forall (A : Type) (l : list A) v a, at_index l v = Some a -> 0 <= v.
Proof.
  induction l as [|b l IH]; simpl; intros v a H; [discriminate|].
  destruct (Z.eqb_spec v 0); [lia|]. specialize (IH _ _ H). lia.
Qed.

Lemma at_index_later : forall (A : Type) (a : A) l v b, at_index l v = Some b -> at_index (a :: l) (v + 1) = Some b.
Proof.
  intros A a l v b H. assert (N := at_index_not_negative _ _ _ _ H). simpl.
  destruct (Z.eqb_spec (v + 1) 0); [lia|]. replace (v + 1 - 1) with v by lia. assumption.
Qed.

(* The elements with their numbers. *)
Fixpoint number {A : Type} (from : Z) (l : list A) : list (Z * A) :=
  match l with [] => [] | a :: rest => (from, a) :: number (from + 1) rest end.

Lemma sum_number : forall (A : Type) (f : A -> Z) l from, sum (fun q => f (snd q)) (number from l) = sum f l.
Proof. induction l; simpl; intros; [reflexivity|]. rewrite IHl. reflexivity. Qed.

Lemma sum_chosen : forall (A : Type) (f : A -> Z) l i from,
  sum (fun q => if i =? fst q then f (snd q) else 0) (number from l)
  = match at_index l (i - from) with Some a => f a | None => 0 end.
Proof.
  induction l as [|a l IH]; simpl; intros i from; [reflexivity|]. rewrite IH.
  replace (i - (from + 1)) with (i - from - 1) by lia.
  destruct (Z.eqb_spec i from); destruct (Z.eqb_spec (i - from) 0); try lia.
  destruct (at_index l (i - from - 1)) eqn:B; [|lia]. apply at_index_not_negative in B. lia.
Qed.

Lemma sum_is_from : forall (A : Type) (f : A -> Z) l from, sum f l = sum_from (fun _ => f) from l.
Proof. induction l; simpl; intros; [reflexivity|]. rewrite <- IHl. reflexivity. Qed.

Lemma sum_replace : forall (A : Type) (f : A -> Z) l i old new changed,
  at_index l i = Some old -> replace l i new = Some changed -> sum f changed = sum f l + f new - f old.
Proof. intros. rewrite !(sum_is_from _ f _ 0). erewrite sum_from_replace by eassumption. reflexivity. Qed.

Lemma map_replace : forall (A B : Type) (f : A -> B) l i old new changed,
  at_index l i = Some old -> replace l i new = Some changed -> f new = f old -> map f changed = map f l.
Proof.
  induction l as [|a l IH]; simpl; intros i old new changed O R E; [discriminate|].
  destruct (i =? 0).
  - injection O as <-. injection R as <-. simpl. congruence.
  - destruct (replace l (i - 1) new) as [c|] eqn:Q; [|discriminate]. injection R as <-. simpl.
    rewrite (IH _ _ _ _ O Q E). reflexivity.
Qed.

Lemma Forall_replace : forall (A : Type) (P : A -> Prop) l i new changed,
  replace l i new = Some changed -> P new -> Forall P l -> Forall P changed.
Proof.
  induction l as [|a l IH]; simpl; intros i new changed R N F; [discriminate|]. inversion F; subst.
  destruct (i =? 0); [injection R as <-; auto|].
  destruct (replace l (i - 1) new) as [c|] eqn:Q; [|discriminate]. injection R as <-. eauto.
Qed.

Fixpoint same_numbers (a b : list Z) : bool :=
  match a, b with
  | [], [] => true
  | x :: rest, y :: others => (x =? y) && same_numbers rest others
  | _, _ => false
  end.

Lemma same_numbers_eq : forall a b, same_numbers a b = true -> a = b.
Proof.
  induction a as [|x a IH]; intros [|y b]; simpl; try discriminate; auto.
  rewrite andb_true_iff, Z.eqb_eq. intros [-> H]. f_equal. auto.
Qed.

Fixpoint same_tables (a b : list (list Z)) : bool :=
  match a, b with
  | [], [] => true
  | x :: rest, y :: others => same_numbers x y && same_tables rest others
  | _, _ => false
  end.

Lemma same_tables_eq : forall a b, same_tables a b = true -> a = b.
Proof.
  induction a as [|x a IH]; intros [|y b]; simpl; try discriminate; auto.
  rewrite andb_true_iff. intros [X H]. f_equal; auto using same_numbers_eq.
Qed.
