"""How often the answers of a real model are the labels of a data set, beside public figures."""
