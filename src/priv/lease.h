// Leases on ranges of host uids: one range a sandbox, never two owners at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/base.h"
#include "priv/badge.h"

namespace priv {

inline constexpr std::uint32_t kFirstLease = 1'879'048'192;  // 0x70000000
inline constexpr std::uint32_t kLeaseSize = 65'536;
inline constexpr std::uint32_t kMostLeases = 4000;  // stays below 2^31

// A locked file STATE/leases/NNNNN. While the lock is held the range is in use. The file lists the
// cgroup folders of its run, one a line: where its owner was killed, these are emptied before
// anyone uses the uids again.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { release(); }

  [[nodiscard]] bool held() const { return lock_.open(); }
  [[nodiscard]] std::uint32_t first() const { return first_; }
  // Writes down what must be empty before the uids may be used again.
  [[nodiscard]] base::Status note_groups(const std::vector<std::string>& folders);
  // Unlinks the file, then lets go of the lock.
  void release();
  // Lets go of the lock and leaves the file: the range stays closed until garbage is collected.
  void abandon() { lock_.reset(); }

 private:
  friend base::Result<Lease> take_lease(Badge, const std::string&);
  friend base::Result<std::uint64_t> collect_leases(Badge, const std::string&);
  static base::Result<Lease> make(const std::string& folder, std::uint32_t number);
  static base::Result<Lease> seize(const std::string& folder, const std::string& name);
  [[nodiscard]] base::Status empty_groups() const;

  base::Fd lock_;
  std::string path_;
  std::uint32_t first_ = 0;
};

// The first free range. Leases whose owner is gone are collected on the way.
// Safe: a range is only ever above kFirstLease, and held by one lock.
[[nodiscard]] base::Result<Lease> take_lease(Badge badge, const std::string& state_dir);
// Removes every lease whose lock can be had, after emptying and removing the cgroups of its run;
// returns how many things went. Safe: a lease with a living owner cannot be locked.
[[nodiscard]] base::Result<std::uint64_t> collect_leases(Badge badge, const std::string& state_dir);

}  // namespace priv
