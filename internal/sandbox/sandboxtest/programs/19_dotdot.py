# tried: to write by .. and through a link
up = "../" * 40
attempt("..", write, up.rstrip("/") + E["OUTSIDE"] + "/new")
os.symlink(E["OUTSIDE"], "link")
attempt("link", write, "link/new")
attempt("rename", os.rename, up + E["OUTSIDE"] + "/secret", "mine")
