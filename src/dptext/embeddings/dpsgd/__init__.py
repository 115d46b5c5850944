"""Differentially private stochastic gradient descent (DP-SGD) for tables of word vectors."""
