"""Neural operators and surrogates: Fourier neural operator, DeepONet, plain perceptron."""
