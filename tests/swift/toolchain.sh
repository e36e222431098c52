#!/bin/sh
# Swift from Debian 13 on a machine that has none: `toolchain.sh build` builds clients/swift and its tests inside the
# folder of the toolchain, `toolchain.sh run PROGRAM WORDS…` runs what was built outside of it, where the sidecar is.
# The folder is SIDECAR_SWIFT_DIR, or ~/.cache/sidecar-swift; the first call fills it with 3.4 GB. Needs root.
set -eu

PACKAGE=$(cd "$(dirname "$0")/../../clients/swift" && pwd)
FOLDER=${SIDECAR_SWIFT_DIR:-$HOME/.cache/sidecar-swift}

install() {
  [ ! -x "$FOLDER/usr/bin/swift-build" ] || return 0
  command -v debootstrap >/dev/null || { echo "needs: apt-get install debootstrap" >&2; exit 1; }
  mkdir -p "$(dirname "$FOLDER")"
  rm -rf "$FOLDER.partial"
  echo "Installing Swift into $FOLDER (3.4 GB, some minutes)" >&2
  debootstrap --variant=minbase --include=swiftlang,libc6-dev trixie "$FOLDER.partial" >"$FOLDER.log" 2>&1 ||
    { tail -5 "$FOLDER.log" >&2; exit 1; }
  mv "$FOLDER.partial" "$FOLDER"
}

# Swift 6.0's libswiftObservation.so for Linux lacks a symbol, and is linked all the same: nothing calls it.
# The mounts are gone with the last process of the new namespace, whatever happens.
build() {
  mkdir -p "$FOLDER$PACKAGE"
  unshare --mount sh -euc '
    mount -t proc proc "$1/proc"
    mount --bind /dev "$1/dev"
    mount --bind "$2" "$1$2"
    exec chroot "$1" sh -c "cd \"$2\" && swift build --build-tests -Xlinker --allow-shlib-undefined -Xswiftc -DSIDECAR_OBSERVATION"
  ' sh "$FOLDER" "$PACKAGE"
}

run() {
  program=$1
  shift
  export SWIFT_BACKTRACE=enable=no
  libraries=$FOLDER/usr/libexec/swift/lib/swift/linux:$FOLDER/usr/lib/x86_64-linux-gnu
  exec "$FOLDER/lib64/ld-linux-x86-64.so.2" --library-path "$libraries" "$PACKAGE/.build/debug/$program" "$@"
}

case "$1" in
  build) install && build ;;
  run) shift && run "$@" ;;
  *) echo "toolchain.sh build, or toolchain.sh run PROGRAM WORDS…" >&2 && exit 2 ;;
esac
