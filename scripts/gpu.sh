# bash troupe-gpu/gpu.sh [COMMAND]: on a machine to which scripts/gpu-bundle.mjs carried Troupe, unpacks Node and the product
# beside itself, builds the addon against this machine's CUDA libtorch, runs the tests of test/gpu, then COMMAND (one string,
# in the product's folder with node on the PATH). Exits with the first failure's status, after all has run.
set -u
here=$(cd "$(dirname "$0")" && pwd)
log=${OUT:-$here}
cd "$here"
if [ ! -x bin/node ]; then
  mkdir -p bin product
  if command -v xz >/dev/null; then xz -dc node.xz > bin/node; else python3 -c "import lzma,shutil,sys; shutil.copyfileobj(lzma.open('node.xz'), open('bin/node','wb'))"; fi
  chmod +x bin/node
  tar xzf product.tar.gz -C product
fi
export PATH="$here/bin:$PATH" CPLUS_INCLUDE_PATH="$here/product/include:${CPLUS_INCLUDE_PATH:-}" JOINED_SOURCES=""
cd product
torch=${TROUPE_LIBTORCH:-$(python3 -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])")}
status=0

echo "== addon against $torch"
start=$(date +%s)
mkdir -p build/native
generator=$(command -v ninja >/dev/null && echo Ninja || echo "Unix Makefiles")
if cmake -G "$generator" -S native -B build/native -DCMAKE_BUILD_TYPE=Release -DTorch_DIR="$torch/share/cmake/Torch" \
    -DNODE_API_INCLUDE="$PWD/node_modules/node-api-headers/include" -DNODE_ADDON_API_INCLUDE="$PWD/node_modules/node-addon-api" \
    > "$log/cmake.log" 2>&1 && cmake --build build/native --parallel "$(nproc)" > "$log/build.log" 2>&1; then
  cp build/native/troupe.node build/troupe.node
  grep "troupe:" "$log/cmake.log"
  echo "== built in $(($(date +%s) - start)) s"
else
  tail -5 "$log/cmake.log"; grep -E "error|Error" "$log/build.log" "$log/cmake.log" | head -40
  exit 1
fi
node scripts/setup/try-addon.mjs "$PWD/build/troupe.node" && echo || status=1

echo "== tests"
node node_modules/vitest/vitest.mjs run --mode gpu 2>&1 | tee "$log/test.log" || true
[ "${PIPESTATUS[0]}" = 0 ] || status=1

if [ $# -gt 0 ]; then
  echo "== $1"
  bash -c "$1" || status=1
fi
exit $status
