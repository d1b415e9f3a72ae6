# tried: files of another user
open("mine", "w").close()
for uid in (0, 1, 1000, 65534):
    if uid != os.getuid():
        attempt("chown %d" % uid, os.chown, "mine", uid, uid)
attempt("setresuid", os.setresuid, 4321, 4321, 4321)
