"""The control plane of the reference worker: one service, two stores."""
