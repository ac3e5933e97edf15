# Removes what is left of a node: $1 is its folder, $2 the name of its cgroups. Its mounts, networks and firewall rules are gone
# with its last process.
cgroups() { for top in /sys/fs/cgroup/"$2" /sys/fs/cgroup/*/"$2"; do [ ! -d "$top" ] || find "$top" -depth -type d; done; }
for _ in $(seq 100); do
  for cgroup in $(cgroups "$@"); do
    kill -9 $(cat "$cgroup/cgroup.procs") 2>/dev/null
    rmdir "$cgroup" 2>/dev/null
  done
  rm -rf --one-file-system "$1" 2>/dev/null
  [ -e "$1" ] || [ -n "$(cgroups "$@")" ] || exit 0
  sleep 0.1
done
exit 1
