#!/bin/sh
# Installs mailtree {{.Version}} for the current user: the program, manual pages and completions, below ~/.local.
#   PREFIX         another folder, such as /usr/local
#   MAILTREE_URL   another address of the folder with the archives, such as a mirror's
set -eu

url=${MAILTREE_URL:-{{.Repository}}/releases/download/v{{.Version}}}
prefix=${PREFIX:-$HOME/.local}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
FreeBSD) os=freebsd ;;
*) fail "there is no mailtree for $(uname -s). On Windows, use WSL 2." ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no mailtree for the processor $(uname -m)." ;;
esac
case ${os}_$arch in
{{- range .Archives}}
{{.OS}}_{{.Arch}}) sum={{.SHA256}} ;;
{{- end}}
*) fail "there is no mailtree for $os on $arch." ;;
esac

name=mailtree_{{.Version}}_${os}_$arch
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if command -v curl >/dev/null; then
  curl -fsSL -o "$tmp/archive" "$url/$name.tar.gz" || fail "cannot download $url/$name.tar.gz."
elif command -v wget >/dev/null; then
  wget -q -O "$tmp/archive" "$url/$name.tar.gz" || fail "cannot download $url/$name.tar.gz."
else
  fail "curl or wget is needed."
fi
if command -v sha256sum >/dev/null; then
  got=$(sha256sum "$tmp/archive")
else
  got=$(shasum -a 256 "$tmp/archive")
fi
[ "${got%% *}" = "$sum" ] || fail "$url/$name.tar.gz does not have the expected checksum. Nothing was installed."

tar -xzf "$tmp/archive" -C "$tmp"
put() { # put FILE TARGET: copies the file, then moves the copy over an earlier version, which may be running
  mkdir -p "$(dirname "$prefix/$2")"
  cp "$tmp/$name/$1" "$prefix/$2.new"
  mv -f "$prefix/$2.new" "$prefix/$2"
}
put mailtree bin/mailtree
for page in "$tmp/$name"/man/*.1; do
  put "man/${page##*/}" "share/man/man1/${page##*/}"
done
put completions/mailtree.bash share/bash-completion/completions/mailtree
put completions/_mailtree share/zsh/site-functions/_mailtree
put completions/mailtree.fish share/fish/vendor_completions.d/mailtree.fish
put LICENSE share/doc/mailtree/LICENSE
put THIRD_PARTY_LICENSES share/doc/mailtree/THIRD_PARTY_LICENSES

echo "installed mailtree {{.Version}} in $prefix/bin"
case :$PATH: in
*":$prefix/bin:"*) ;;
*) echo "$prefix/bin is not on your PATH. Add this line to your shell's profile: export PATH=\"\$PATH:$prefix/bin\"" ;;
esac
