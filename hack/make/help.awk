# Prints the targets that carry a `## description`, under the `##@ group` that stands above them.
BEGIN { FS = ":.*## "; print "Usage: make TARGET" }
/^##@ / { group = substr($0, 5); if (!(group in targets)) order[++groups] = group; next }
/^[a-z0-9-]+:.*## / { targets[group] = targets[group] sprintf("  %-18s %s\n", $1, $2) }
END { for (i = 1; i <= groups; i++) if (targets[order[i]] != "") printf "\n%s\n%s", order[i], targets[order[i]] }
