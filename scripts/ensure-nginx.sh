#!/bin/sh
# Prints the path of nginx, which a row of the bench measures against.
#
# Looks at $KANDEV_NGINX, the PATH and where Debian puts it. On Debian as root it then installs the package nginx, whose
# service is not started. Exits 3 when there is none to be had.
set -eu

say() { echo "ensure-nginx: $*" >&2; }

# Prints the program when it is one, and exits.
take() {
    [ -x "$1" ] || return 0
    echo "$1"
    exit 0
}

look() {
    [ -z "${KANDEV_NGINX:-}" ] || take "$KANDEV_NGINX"
    take "$(command -v nginx || true)"
    take /usr/sbin/nginx
    take /usr/local/sbin/nginx
}

missing() {
    say "MISSING: nginx ($1)"
    say "install it (Debian: nginx), or name the program in KANDEV_NGINX"
    exit 3
}

look
[ -f /etc/debian_version ] && [ "$(id -u)" = 0 ] || missing "none found, and this is not Debian as root"
say "no nginx found; installing Debian's package nginx"
export DEBIAN_FRONTEND=noninteractive
# Debian asks this file whether a service may be started; one that is there already knows better.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
{ apt-get update && apt-get install -y --no-install-recommends nginx; } >&2 ||
    missing "apt-get cannot install it: see the lines above"
look
missing "the package nginx was installed but its program was not found"
