"""The latent sparse GP meta-model: `fit_model` makes one, `MetaModel` infers and predicts, `storage` keeps it."""
