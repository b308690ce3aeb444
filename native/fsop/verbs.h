// The verbs of `fsop`, by what they touch: look.cc reads, entries.cc names, bytes.cc contents, attributes.cc the rest
// of an object, system.cc what isn't about one path. PROTOCOL.md says what each takes and answers.
#pragma once

#include "control/line.h"
#include "fsop/roots.h"

namespace fsop {

using Verb = sys::Result<void> (*)(Roots&, const control::Request&, control::Answer*);

sys::Result<void> OpenRoot(Roots&, const control::Request&, control::Answer*);
sys::Result<void> CloseRoot(Roots&, const control::Request&, control::Answer*);

sys::Result<void> Stat(Roots&, const control::Request&, control::Answer*);
sys::Result<void> List(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Extents(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Read(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Hash(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Equal(Roots&, const control::Request&, control::Answer*);

sys::Result<void> Mkdir(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Mknod(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Create(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Symlink(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Link(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Rename(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Unlink(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Rmdir(Roots&, const control::Request&, control::Answer*);

sys::Result<void> Copy(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Punch(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Truncate(Roots&, const control::Request&, control::Answer*);

sys::Result<void> Attrs(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Fsync(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Syncfs(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Flush(Roots&, const control::Request&, control::Answer*);
sys::Result<void> OpenHandle(Roots&, const control::Request&, control::Answer*);
sys::Result<void> Procs(Roots&, const control::Request&, control::Answer*);

}  // namespace fsop
