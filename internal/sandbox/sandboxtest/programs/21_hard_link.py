# tried: a hard link to a file outside
attempt("hard link", os.link, E["OUTSIDE"] + "/secret", "mine")
