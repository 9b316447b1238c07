set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
export RUST_BACKTRACE=1 CARGO_TERM_COLOR=never
# Find what changed and test only that.
changed=$(git diff --name-only origin/main... | grep -E '\.(rs|toml)$' | sort -u || true)
if [ -z "$changed" ]; then
    echo "nothing changed" >&2
    exit 0
fi
for crate in crates/*/; do
    name=$(basename "$crate")
    if echo "$changed" | grep -q "^$crate"; then
        printf '%-20s %s\n' "$name" "changed"
        cargo test -p "exoshell-$name" --quiet 2>&1 | tee "/tmp/test-$name.log" | tail -n 5
        cargo clippy -p "exoshell-$name" --all-targets -- -D warnings || failed+=("$name")
    fi
done
python3 - <<'PY'
import json, pathlib
for path in sorted(pathlib.Path("target").glob("*.json")):
    data = json.loads(path.read_text())
    print(path.name, len(data.get("results", [])))
PY
cat > notes.md <<NOTES
# Notes of $(date +%F)
- branch: $(git branch --show-current)
- changed: ${changed//$'\n'/, }
NOTES
sed -i -e 's/version = "0.1.0"/version = "0.1.1"/' -e '/^#/d' version.toml
find . -name '*.orig' -not -path './target/*' -print0 | xargs -0 -r ls -la
grep -rn --include='*.rs' -E 'todo!|unimplemented!' src crates | head -20
while read -r file line; do
    case "$file" in
        *.rs) echo "rust $line" ;;
        *.md|*.txt) echo "text" ;;
        *) : ;;
    esac
done < <(git ls-files | head -50 | nl)
git add -A && git commit -m "guard: faster" && git log --oneline -n 3
curl -fsSL https://example.org/api/v1/items?page=2 | jq '.items[] | {id, name}' > items.json
docker ps --format '{{.Names}}' | sort; ls -la target/debug | awk '{print $5, $9}' | sort -rn | head
