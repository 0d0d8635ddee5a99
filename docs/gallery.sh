#!/usr/bin/env bash
# Makes gallery.md and gallery/*.svg in a directory, docs by default, from docs/examples/gallery: each scenario there is a
# contact sheet, the recorded morning is drawn on two scenes, and the demo shows its bug. All with the command itself, so the
# page shows what anybody gets.
set -euo pipefail
cd "$(dirname "$0")/.."
to=${1:-docs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

go build -o "$work/sajou-replay" ./cmd/sajou-replay
export SAJOU_STORE="$work/store"
mkdir -p "$to/gallery"
rm -f "$to"/gallery/*.svg
page="$to/gallery.md"

# run shows a command on the page and does it, with its pictures beside the page.
run() {
  printf -- '%s\n' "    sajou-replay $*" >>"$page"
  (set -- "${@/#docs\/gallery\//$to/gallery/}"; "$work/sajou-replay" "$@" >"$work/out")
}
say() { printf -- '%s\n' "$@" >>"$page"; }
picture() { say '' "![$2](gallery/$1.svg)" ''; }

scenario() { # NAME [SCENE]
  local file=docs/examples/gallery/$1.json
  local name
  name=$(sed -n 's/^  "name": "\(.*\)",$/\1/p' "$file")
  say "### $name" '' '```json' '['
  sed -n '/^  "definitions": \[$/,/^  \],$/p' "$file" | sed -e '1d' -e '$d' -e 's/^  //' >>"$page"
  say ']' '```' ''
  run rehearse "$file" ${2:+--scene "$2"} --render "docs/gallery/$1.svg"
  picture "$1" "$name"
}

cat >"$page" <<'END'
# Gallery

What choreographies look like. Every picture on this page is made by the command above it, run in the root of the
repository: `make gallery` makes them all again, byte for byte. The scenarios are in [examples/gallery](examples/gallery), most
of them on the scene [yard.json](examples/scenes/yard.json); the language is explained in [choreography.md](choreography.md),
scenes in [scenes.md](scenes.md). Below a picture stand the signals that came before it, and the session's time.

## What a step can do

END
yard=docs/examples/scenes/yard.json
for name in move spawn-destroy fly flash pulse beam text sound state route; do scenario $name $yard; done
say '## How steps are put together' ''
scenario stagger $yard
scenario repeat $yard
scenario curves
say '## When performances meet' ''
scenario interruption $yard
say 'Above, a performance and the signal that ends it have one correlation id. Below, two performances want the same figure and nothing was'
say 'said about it: the later one has it, and the stage remarks on it. `sajou-replay scan --conflicts` finds where that happens in a session,' \
  '`sajou-replay lint` where it can.' ''
scenario conflict $yard
scenario guard $yard
say '## Bindings' ''
scenario bindings $yard

cat >>"$page" <<'END'
## A session without choreographies

Nothing has to be written to see something. As long as no choreography is in force, signals show by themselves, on a
scene where everybody finds a place:

END
run import docs/examples/gallery/morning.jsonl --session morning
run render morning 2..end --sheet --count 9 --columns 3 -O docs/gallery/morning.svg
picture morning 'A session on the default scene'
say 'The same session on a scene of its own, [workshop.json](examples/scenes/workshop.json):' ''
run render morning 2..end --sheet --count 9 --columns 3 --scene docs/examples/scenes/workshop.json -O docs/gallery/workshop.svg
picture workshop 'The same session in the workshop'
say 'And one moment of it, with the places of the scene:' ''
run render morning 15+300ms --places --caption --scene docs/examples/scenes/workshop.json -O docs/gallery/places.svg
picture places 'Places of the workshop'

cat >>"$page" <<'END'
## A visual bug, before and after

The demo records a night in a lighthouse, in which something goes wrong with the picture, and `bisect` names the entry since which:
a tool call has failed, there is smoke, and the smith glows as if nothing had happened.

END
run demo --pictures docs/gallery/
say '    sajou-replay bisect --where '"'state.stage.entities.smoke.visible && state.stage.entities.smith.strength > 0.5'" '' '```'
"$work/sajou-replay" bisect --where 'state.stage.entities.smoke.visible && state.stage.entities.smith.strength > 0.5' >>"$page" 2>"$work/tests"
say '```'
picture before 'Before entry 36'
picture after 'After entry 36'
say 'What differs between the two, marked and listed:' ''
(run render 35 38+400ms --compare -O docs/gallery/compare.svg) || [ $? = 1 ]
say '' '```'
cat "$work/out" >>"$page"
say '```'
picture compare 'What differs'
