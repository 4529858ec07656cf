#!/bin/sh
# Usage: ask.sh AGENT QUESTION
# Asks an agent a question as $MAILTREE_ME, waits for the answer, and prints it.
set -eu

# event_id: prints the id of the message in the JSON on standard input.
event_id() { sed -n 's/.*"id":"\(msg_[^"]*\)".*/\1/p'; }

{
  mailtree watch --lines &
  echo $!
  wait
} | {
  read -r watch
  trap 'kill "$watch"' EXIT
  read -r _ # the first line says that watch has started, so it reports every answer to the question below
  question=$(mailtree send "$1" --json -m "$2" | event_id)
  while read -r event; do
    id=$(printf '%s\n' "$event" | event_id)
    case $event in *'"what":"mail"'*) ;; *) continue ;; esac
    if mailtree read --peek --json "$id" | grep -q "\"in_reply_to\":\"$question\""; then
      mailtree read "$id"
      exit
    fi
  done
}
