"""scikit-learn's own checks of what an estimator must be."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from pnp_gcd import PNPDiscoverer


@parametrize_with_checks([PNPDiscoverer()])
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)
