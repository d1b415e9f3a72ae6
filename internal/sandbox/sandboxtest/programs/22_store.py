# tried: to change the store of snapshots
attempt("list", os.listdir, E["STORE"])
attempt("write", write, E["STORE"] + "/blob")
attempt("remove", os.remove, E["STORE"] + "/blob")
