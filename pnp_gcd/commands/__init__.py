"""The commands of ``pnp-gcd``, each a module of its own; ``pnp_gcd.cli`` puts them together."""
