// SyncedMark: the file `synced` beside the segments. It says up to which address the journal is durable, so that a journal
// which was cut short can be told from one whose last batch was torn. Written in quiet moments and at the end, never
// waited for: losing it loses only that help.

#pragma once

#include <memory>
#include <string>

#include "bide/result.h"
#include "engine/journal/journal.h"
#include "platform/disk.h"

namespace bide::engine::journal {

class SyncedMark {
 public:
  SyncedMark(platform::Disk& disk, const std::string& directory) : disk_(disk), path_(directory + "/synced") {}

  // Everything before the address is durable already. A full disk is no error.
  Status write(Address address);
  // 0 when there is none, or none that can be trusted.
  Result<Address> read();

 private:
  platform::Disk& disk_;
  const std::string path_;
  std::unique_ptr<platform::File> file_;
};

}  // namespace bide::engine::journal
