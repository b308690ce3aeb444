#!/usr/bin/env bash
# What a careless agent does in one turn: none of it goes through an editor's "write file" tool.
set -euo pipefail
sed -i 's/steelblue/crimson/; s/16px/18px/' src/*.css
sed -i 's/Tide times/Tides!/' index.html
rm -rf docs
mv lib core
sed -i 's#../lib/#../core/#' src/app.js
echo 'API_KEY=overwritten' > .env
rm notes.md
printf ':root { --sea: teal; }\n' > src/theme.css
chmod +x src/app.js
git add -A
git commit -qm 'Redesign'
