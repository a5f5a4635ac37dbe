"""RANGER: post-fire recovery agents whose every figure can be traced."""
