# tried: terminal escapes in the output
sys.stdout.write("\x1b]0;owned\x07\x1b[2J\x1b[31mPASSED\x1b[0m\u009b1m\u202edetrever\x08\r\n")
