#!/bin/sh
# A "Run Script" build phase, after "Copy Bundle Resources": puts Sidecar into the app and signs it with the app's
# identity, inside out. SIDECAR_DIST is the folder that `make dist` wrote. Not run by our tests.
set -eu

helpers=$TARGET_BUILD_DIR/$CONTENTS_FOLDER_PATH/Helpers
mkdir -p "$helpers"
ditto "$SIDECAR_DIST" "$helpers/sidecar"

identity=${EXPANDED_CODE_SIGN_IDENTITY:--}
find "$helpers/sidecar" -type f \( -name '*.dylib' -o -name '*.so' \) -exec \
  codesign --force --options runtime --timestamp=none --sign "$identity" {} \;
codesign --force --options runtime --timestamp=none --sign "$identity" \
  --entitlements "$SRCROOT/Sidecar.entitlements" "$helpers/sidecar/sidecar"
