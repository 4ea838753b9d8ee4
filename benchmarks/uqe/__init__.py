"""The experiments of the UQE paper (Dai et al., NeurIPS 2024): its tables and figures on the data at hand."""
