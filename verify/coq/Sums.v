(* Sums over lists. *)

From Coq Require Import ZArith List Bool Lia.
Import ListNotations.
Open Scope Z_scope.

Fixpoint sum {A : Type} (f : A -> Z) (l : list A) : Z :=
  match l with [] => 0 | a :: rest => f a + sum f rest end.

Lemma sum_ext : forall (A : Type) (f g : A -> Z) l, (forall a, In a l -> f a = g a) -> sum f l = sum g l.
Proof.
  induction l as [|a l IH]; simpl; intros H; [reflexivity|].
  rewrite (H a) by auto. rewrite IH; auto.
Qed.

Lemma sum_le : forall (A : Type) (f g : A -> Z) l, (forall a, In a l -> f a <= g a) -> sum f l <= sum g l.
Proof.
  induction l as [|a l IH]; simpl; intros H; [lia|].
  assert (f a <= g a) by auto. assert (sum f l <= sum g l) by auto. lia.
Qed.

Lemma sum_plus : forall (A : Type) (f g : A -> Z) l, sum (fun a => f a + g a) l = sum f l + sum g l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_scale : forall (A : Type) (c : Z) (f : A -> Z) l, sum (fun a => c * f a) l = c * sum f l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_zero : forall (A : Type) (l : list A), sum (fun _ => 0) l = 0.
Proof. induction l; simpl; lia. Qed.

Lemma sum_app : forall (A : Type) (f : A -> Z) l m, sum f (l ++ m) = sum f l + sum f m.
Proof. induction l; simpl; intros; [lia|rewrite IHl; lia]. Qed.

Lemma sum_map : forall (A B : Type) (g : A -> B) (f : B -> Z) l, sum f (map g l) = sum (fun a => f (g a)) l.
Proof. induction l; simpl; [lia|rewrite IHl; lia]. Qed.

Lemma sum_flat_map : forall (A B : Type) (g : A -> list B) (f : B -> Z) l,
  sum f (flat_map g l) = sum (fun a => sum f (g a)) l.
Proof. induction l; simpl; [lia|rewrite sum_app, IHl; lia]. Qed.

Lemma sum_swap : forall (A B : Type) (f : A -> B -> Z) (l : list A) (m : list B),
  sum (fun a => sum (f a) m) l = sum (fun b => sum (fun a => f a b) l) m.
Proof.
  induction l as [|a l IH]; simpl; intros m; [symmetry; apply sum_zero|].
  rewrite IH. symmetry. apply sum_plus.
Qed.
