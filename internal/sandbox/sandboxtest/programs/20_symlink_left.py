# tried: to leave links behind that lead outside
os.symlink(E["OUTSIDE"] + "/secret", "innocent.py")
os.symlink(E["OUTSIDE"], "folder")
print("left")
