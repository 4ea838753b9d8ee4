"""What the questions of SemBench are about, the same for every worker; each lies beside this file and runs as a script."""

FILM = "ant_man_and_the_wasp_quantumania"
GENRES = {
    "q3a": "a comedy",
    "q3b": "science fiction",
    "q3d": "a horror film",
    "q3f": "a romantic comedy",
    "q3g": "a biographical comedy",
}
PLACES = {"q6a": "Frankfurt", "q6b": "Germany", "q6c": "Europe"}
