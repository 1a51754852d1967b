"""Ridge regressions of rewards on contexts, fitted to sums or row by row.

Arms have a parameter each (contexts (R, d)), or all share one (contexts (R, K, d)).
"""

import numpy as np
import scipy

from dpbandit.base import Floats, Ints, pick, predictions, rows
from dpbandit.specs import ContextualSpec

_BLAS_DIM = 32
"""Smallest number of features at which BLAS updates in place, replica by replica, are faster than a
gather, outer product and scatter for all replicas (twice as fast at 50, slower at 20)"""


class Ridge:
    """Ridge regression, theta = V^-1 u with V = regularization I + sum x x' and u = sum r x.

    `theta` is (R, K, d) and `inverse`, V^-1, (R, K, d, d), with 1 for K if arms share a parameter.
    """

    def __init__(self, spec: ContextualSpec, replicas: int, *, regularization: float) -> None:
        R, d, self._shared = replicas, spec.dim, spec.shared
        G = 1 if spec.shared else spec.n_actions
        self.theta: Floats = np.zeros((R, G, d))
        self.inverse: Floats = np.tile(np.eye(d) / regularization, (R, G, 1, 1))

    def means(self, context: Floats) -> Floats:
        """Return the predicted rewards of all arms, (R, K)."""
        return predictions(context, self.theta, shared=self._shared)

    def variances(self, context: Floats) -> Floats:
        """Return x' V^-1 x of every arm, (R, K), or 0 where noise in V made it negative."""
        Vx = self.products(context)
        variances = np.vecdot(Vx, context) if self._shared else np.matvec(Vx, context)
        return np.maximum(variances, 0.0)

    def predicted(self, context: Floats) -> tuple[Floats, Floats]:
        """Return predicted rewards and variances x' V^-1 x of all arms, (R, K) each."""
        return self.means(context), self.variances(context)

    def products(self, context: Floats) -> Floats:
        """Return V^-1 x of every arm, (R, K, d), with V the arm's regularised Gram matrix."""
        if self._shared:
            return context @ self.inverse[:, 0]
        R, K, d, _ = self.inverse.shape  # one tall product per replica is faster than K small ones
        tall = np.matvec(self.inverse.reshape(R, K * d, d), context)
        return tall.reshape(*tall.shape[:-1], K, d)

    def refit(self, gram: Floats, moment: Floats, shift: Floats | float) -> None:
        """Fit to sums, Gram matrices and moments of arms, with V = gram + shift I.

        `gram` is (R, K, d, d) and `moment` (R, K, d), with 1 for K if arms share a parameter. Arms
        with their own may also come as one joint matrix, (R, 1, K d, K d): an arm's prediction
        needs only its slice of theta and its diagonal block of the inverse. `shift` is a number, or
        one for each matrix, (R, K, 1, 1).
        """
        R, G, d = self.theta.shape
        inverse: Floats = np.linalg.inv(gram + shift * np.eye(gram.shape[-1]))
        self.theta = np.matvec(inverse, moment).reshape(R, G, d)
        if inverse.shape[1] != G:
            slots = inverse.reshape(R, G, d, G, d)
            inverse = slots[:, rows(G), :, rows(G)].transpose(1, 0, 2, 3)
        self.inverse = inverse


class JointRidge(Ridge):
    """`Ridge` of one joint (K d, K d) matrix V, refitted after every round without an inverse.

    With x_a the context in the d coordinates of arm a, B = (x_1 .. x_K, u) and V = L L',
    predictions and variances are inner products of columns of W = L^-1 B. LAPACK factors and
    solves in place, replica by replica, which saves the copies of NumPy's `cholesky`.
    """

    def __init__(self, spec: ContextualSpec, replicas: int, *, regularization: float) -> None:
        super().__init__(spec, replicas, regularization=regularization)
        R, K, d = self.theta.shape
        self._slots = rows(K)[:, None], rows(K * d).reshape(K, d)
        self.refit(np.zeros((R, 1, K * d, K * d)), np.zeros((R, 1, K * d)), regularization)

    def refit(self, gram: Floats, moment: Floats, shift: Floats | float) -> None:
        # `gram` is symmetric, and overwritten
        V, D = np.ascontiguousarray(gram[:, 0]), gram.shape[-1]
        flat = V.reshape(len(V), D * D)
        flat[:, :: D + 1] = diagonal = flat[:, :: D + 1] + np.reshape(shift, (-1, 1))
        self._moment = moment[:, 0]
        self._factors: list[Floats] = []
        """L of each replica, below its diagonal; V^-1 where noise made V indefinite"""
        self._indefinite: list[int] = []
        """replicas without a Cholesky factor"""
        for r, one in enumerate(V):
            # lower, not cleaned, overwritten
            factor, failed = scipy.linalg.lapack.dpotrf(one.T, 1, 0, 1)
            if failed:  # V is left above the diagonal of `factor`
                above = np.triu(factor, 1)
                factor = np.linalg.inv(above + above.T + np.diag(diagonal[r]))
                self._indefinite.append(r)
            self._factors.append(factor)

    def means(self, context: Floats) -> Floats:
        return self.predicted(context)[0]

    def variances(self, context: Floats) -> Floats:
        return self.predicted(context)[1]

    def predicted(self, context: Floats) -> tuple[Floats, Floats]:
        R, K, d = self.theta.shape
        B: Floats = np.zeros((R, K + 1, K * d))  # transposed: LAPACK stores columns
        B[:, *self._slots] = context[:, None]
        B[:, K] = self._moment
        for factor, columns in zip(self._factors, B, strict=True):
            # lower, not transposed, overwritten
            scipy.linalg.blas.dtrsm(1.0, factor, columns.T, 0, 1, 0, 0, 1)
        x, u = B[:, :K], B[:, K]
        means, variances = np.matvec(x, u), np.vecdot(x, x)
        for r in self._indefinite:
            x = np.zeros((K, K * d))
            x[self._slots] = context[r]
            Vx = x @ self._factors[r]
            means[r], variances[r] = Vx @ self._moment[r], np.maximum(np.vecdot(Vx, x), 0.0)
        return means, variances


class OnlineRidge(Ridge):
    """`Ridge` that learns row by row from exact data, for agents without privacy."""

    def __init__(self, spec: ContextualSpec, replicas: int, *, regularization: float) -> None:
        super().__init__(spec, replicas, regularization=regularization)
        R, G, d = self.theta.shape
        self._offset = rows(R) * G
        self._block = np.empty((R, d, d))  # scratch: big temporaries would fault pages
        self._outer = np.empty((R, d, d))
        self._seen: tuple[Floats | None, Floats] = None, np.empty(0)

    def sampled(self, context: Floats, scale: float, z: Floats) -> Floats:
        """Return rewards predicted by a parameter drawn from N(theta, scale^2 V^-1), (R, K).

        `z` are standard normals, (R, d) for a shared parameter, through a Cholesky factor, and
        (R, K) for arms with their own, whose independent predictions are drawn directly.
        """
        if self._shared:
            root = np.linalg.cholesky(self.inverse[:, 0])  # (R, d, d)
            noise = np.matvec(context, np.matvec(root, z))
        else:
            noise = np.sqrt(self.variances(context)) * z
        return self.means(context) + scale * noise

    def products(self, context: Floats) -> Floats:
        # stored, because `learn` mostly needs one of them next
        Vx = super().products(context)
        self._seen = context, Vx
        return Vx

    def learn(self, context: Floats, action: Ints, reward: Floats) -> None:
        """Add a round's row to theta and V^-1 by the formula of Sherman and Morrison."""
        x = pick(context, action) if self._shared else context
        seen, Vx = self._seen
        self._add(x, self._places(action), reward, pick(Vx, action) if seen is context else None)

    def _places(self, action: Ints) -> Ints:
        """Return the index of each replica's parameter among all replicas' parameters, (R,)."""
        return rows(len(action)) if self._shared else self._offset + action

    def _add(self, x: Floats, where: Ints, reward: Floats, Vx: Floats | None = None) -> None:
        """Add a row x (R, d) to the parameters at `where`; `Vx` is V^-1 x if it is known."""
        d = x.shape[-1]
        inverse, theta = self.inverse.reshape(-1, d, d), self.theta.reshape(-1, d)
        self._seen = None, np.empty(0)  # V is about to change
        if d < _BLAS_DIM:
            block = inverse.take(where, axis=0, out=self._block, mode="clip")
            Vx = np.matvec(block, x) if Vx is None else Vx
        elif Vx is None:
            Vx = np.array([inverse[i].dot(row) for i, row in zip(where.tolist(), x, strict=True)])
        gain = Vx / (1 + np.vecdot(Vx, x))[:, None]
        chosen = theta[where]
        error = reward - np.vecdot(chosen, x)
        theta[where] = chosen + gain * error[:, None]
        if d < _BLAS_DIM:
            block -= np.einsum("ri,rj->rij", Vx, gain, out=self._outer)
            inverse[where] = block
        else:
            for index, left, right in zip(where.tolist(), Vx, gain, strict=True):
                scipy.linalg.blas.dger(-1.0, left, right, a=inverse[index].T, overwrite_a=True)
