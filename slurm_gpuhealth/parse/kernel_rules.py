"""The table behind kernel_kinds: how lines of the kernel log begin, and what they are.

Data only. Shapes from the kernel's own sources, 3.10 to 6.x (drivers/pci/pcie/aer.c and dpc.c, drivers/pci/hotplug,
drivers/iommu, fs/ext4, fs/xfs, fs/btrfs, fs/jbd2, net/sunrpc, fs/nfs, fs/smb, drivers/nvme/host, block/blk-core.c,
drivers/scsi, drivers/ata, drivers/md, arch/x86/kernel/cpu/mce, drivers/acpi/apei, drivers/firmware/efi/cper.c,
drivers/edac, mm/oom_kill.c, mm/memory-failure.c, kernel/hung_task.c, kernel/watchdog.c, kernel/rcu, drivers/net,
net/sched/sch_generic.c), of the Lustre and BeeGFS clients, and from public bug reports; looked up 2026-11-30.

A row: how the text may begin (its first four characters, several separated by "|"; "" for a line that begins with
the name of a driver or a process), a substring that must be in it, the kind, the pattern, and what to add to data.
The first row that matches decides; rows that begin with "" come first. Patterns match at the start of the text: a
name that a user chose, printed in the middle of a line, must not look like another line. Named groups go into data,
but for bdf, pid and process, which are fields of the event. A kind of None: a line known to say nothing.
"""
from __future__ import annotations

BDF = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_ON = r"[\w.-]{1,32} (?P<bdf>" + BDF + r"):"          # a driver and its device
_CORRECTED = "Correct(?:ed|able)"
_UNCORRECTED = r"Uncorrect(?:ed|able)(?: \((?P<class>Fatal|Non-Fatal)\))?"
_BUS_ERROR = _ON + r" (?:AER: )?PCIe Bus Error: (?:severity=)?%s(?:, ?type=(?P<type>[^,(]{1,40}))?"
_RECEIVED = _ON + r" AER: (?:Multiple )?%s error (?:message )?received(?: from)?:? ?(?P<from>\S{0,40})"
_HW = r"(?:mce: |\{\d{1,9}\}|)\[Hardware Error\]: +"
_FS = r"(?P<fs>EXT[234])-fs"
_DEVICE = r"\((?:device )?(?P<device>[^)\s]{1,64})[^)]{0,40}\)"
_FULL = r".*\berror -?(?:28|122)\b"                   # ENOSPC, EDQUOT: a full disk is no broken one
_ENDS = r"(?=[\s,.!-]|$)"

_PLACE = r"\(\w{1,64}\.[ch]:\d{1,6}:\w{1,64}\(\)\) "    # of a line of Lustre's code

_EXT, _DISKS = "EXT4|EXT3|EXT2", "blk_|prin|end_|I/O |crit|reco|time|devi|prot|tran|medi|targ"

PCIE = (
    ("", "PCIe Bus Error: ", "aer_corrected", _BUS_ERROR % _CORRECTED, None),
    ("", "PCIe Bus Error: ", "aer_uncorrected", _BUS_ERROR % _UNCORRECTED, None),
    ("", "AER: ", "aer_corrected", _RECEIVED % _CORRECTED, None),
    ("", "AER: ", "aer_uncorrected", _RECEIVED % _UNCORRECTED, None),
    ("", "AER: ", "aer_uncorrected", _ON + r" AER: (?:can't recover|device recovery failed|subordinate device reset"
     " failed)", {"what": "no recovery"}),
    ("", "AER: ", "aer_uncorrected", _ON + r" AER: aer_uncor_severity: ", None),
    ("", "DPC: ", "pcie_dpc", _ON + r" DPC: containment event,? ?(?:status:)?(?P<status>0x[0-9a-f]{1,8})?"
     r"(?:.{0,80}? received from (?P<from>" + BDF + "))?", None),
    ("", "pciehp: Slot", None, _ON + r" pciehp: Slot\([^)]{0,20}\): Link Down/Up ignored", None),
    ("", "pciehp: Slot", "pcie_link_down", _ON + r" pciehp: Slot\((?P<slot>[^)]{0,20})\): (?:Link Down|Card not"
     " present)", None),
    ("", "change power state", "pci_power_refused", _ON + r" (?:Refused to|Unable to|can't) change power state"
     r"(?:,? (?:currently in|from) (?P<state>D\w{1,5}))?", None),
    ("", "with driver nvidia", "gpu_probe_failed", r"nvidia (?P<bdf>" + BDF + r"): probe with driver nvidia failed with"
     r" error (?P<error>-?\d{1,9})", None),
    ("nvid", "probe of", "gpu_probe_failed", r"nvidia: probe of (?P<bdf>" + BDF + r") failed with error"
     r" (?P<error>-?\d{1,9})", None),
    ("", "AMD-Vi: Event logged", "iommu_fault", _ON + r" AMD-Vi: Event logged \[(?P<reason>\w{1,40})", None),
    ("AMD-", "Event logged", "iommu_fault", r"AMD-Vi: Event logged \[(?P<reason>\w{1,40}) device="
     r"(?P<bdf>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", None),
    ("DMAR", "Request device", "iommu_fault", r"DMAR: \[[^\]]{1,40}\] Request device \[(?P<bdf>(?:[0-9a-f]{4}:)?"
     r"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\](?:.{0,160}?fault reason (?P<reason>\w{1,8}))?", None),
    ("arm-", "event 0x", "iommu_fault", r"arm-smmu-v3 \S{1,60} event (?P<reason>0x[0-9a-f]{1,4}) received", None),
)

STORAGE = (
    (_EXT, "emounting filesystem read-only", "fs_readonly", _FS + r" " + _DEVICE + r":.*[Rr]emounting filesystem"
     " read-only", None),
    (_EXT, "rror", "fs_error", _FS + r" (?:error|critical|warning) " + _DEVICE + _FULL, {"full": True}),
    (_EXT, " index full", "fs_error", _FS + r" warning " + _DEVICE + r".*[Dd]irectory (?:\(ino: \d{1,20}\) )?"
     "index full", {"full": True}),
    (_EXT, "", "fs_error", _FS + r" (?:error|critical) " + _DEVICE, None),
    (_EXT, "from previous mount", "fs_error", _FS + r" warning " + _DEVICE, {"history": True}),
    (_EXT, "", "fs_error", _FS + r" warning " + _DEVICE + r".*(?:error|[Cc]orrupt|[Ee]rror|[Ii]nvalid|bad )", None),
    (_EXT, "rror", "fs_error", _FS + r" " + _DEVICE + r": (?:error count since|initial error at|last error at|warning:"
     " mounting fs with errors|warning: mounting unchecked)", {"history": True}),
    (_EXT, "rror", "fs_error", _FS + r" " + _DEVICE + r": (?:Delayed block allocation failed|failed to convert)"
     r".* error -?(?:28|122)\b", {"full": True}),
    (_EXT, "", "fs_error", _FS + r" " + _DEVICE + r": (?:.{0,20}I/O error|Delayed block alloc|failed to convert|This"
     r" should not happen|previous I/O error|error:|[Ee]rror (?:reading|writing|loading)|ext4_\w{1,40}: .*(?:failed|"
     r"error)|.{0,60}[Cc]orrupt)", None),
    ("JBD2|jour", "", "fs_error", r"(?P<fs>JBD2|journal commit): (?:(?:Detected )?I/?O error|Error -?\d{1,9} detected|"
     r"recovery failed|Failed to read block|.*aborted|.*bad checksum|I/O error).*?(?: for| on| device|$)"
     r" ?(?P<device>[\w.!-]{0,64})", None),
    ("Abor", "", "fs_error", r"Aborting journal on device (?P<device>[\w.!-]{1,64}?)(?:-8)?\.?$", {"fs": "jbd2"}),
    ("XFS ", "rror", "fs_error", r"(?P<fs>XFS) " + _DEVICE + r":.*\berror -?(?:28|122)\b", {"full": True}),
    ("XFS ", "hut", "fs_error", r"(?P<fs>XFS) " + _DEVICE + r": .*(?:[Ss]hutting down|[Ss]hut down|xfs_do_force_shut)",
     {"shutdown": True}),
    ("XFS ", "", "fs_error", r"(?P<fs>XFS) " + _DEVICE + r": .*(?:\b[Ee]rror\b|[Cc]orruption|corrupt|Failing async|"
     r"run xfs_repair|rectify the problem)", None),
    ("BTRF", "forced readonly", "fs_readonly", r"(?P<fs>BTRFS)[^(]{0,40}" + _DEVICE, None),
    ("BTRF", "", "fs_error", r"(?P<fs>BTRFS)[^(]{0,40}" + _DEVICE + r".*errno=-(?:28|122)\b", {"full": True}),
    ("BTRF", "errs: ", "fs_error", r"(?P<fs>BTRFS) info " + _DEVICE + r": bdev .* errs: ", {"history": True}),
    ("BTRF", "", "fs_error", r"(?P<fs>BTRFS)(?: (?:error|critical|warning))?:? (?:error )?" + _DEVICE
     + r".*(?:errno|error|errs:|corrupt|csum failed|failed|aborted)", None),
    ("BTRF", "aborted", "fs_error", r"(?P<fs>BTRFS): Transaction aborted \(error -(?!28|122)\d{1,9}\)", None),
    ("FAT-", "not properly unmounted", "fs_error", r"(?P<fs>FAT)-fs " + _DEVICE + r": .{0,20}not properly "
     r"unmounted", {"history": True}),
    ("F2FS|bcac|FAT-|GFS2", "read", "fs_readonly", r"(?:(?P<fs>F2FS|bcachefs|FAT|GFS2)(?:-fs)? ?)"
     + _DEVICE + r".*(?:set|go|going|remounting filesystem|emergency) read.?only", None),
    ("F2FS|bcac|FAT-|GFS2", "", "fs_error", r"(?P<fs>F2FS|bcachefs|FAT|GFS2)(?:-fs)? ?:?(?: error)? ?"
     r"(?:" + _DEVICE + r"|fsid=(?P<device2>[\w:.-]{1,64})):.*(?:error|[Cc]orrupt|withdraw|fatal)", None),
    ("WARN", "Pool '", "fs_error", r"WARNING: Pool '(?P<device>[^']{1,64})' has encountered an uncorrectable I/O",
     {"fs": "ZFS"}),
    ("nfs:|NFS:|lock|nfs4|NFS ", "not responding", "nfs_not_responding", r"(?:nfs4?|NFS|lockd):? server"
     r" (?P<server>\S{1,100}) not responding", None),
    ("nfs:|NFS:|lock|nfs4|NFS ", " OK", "nfs_ok", r"(?:nfs4?|NFS|lockd):? server (?P<server>\S{1,100}) OK", None),
    ("nfs_|NFS:|nfs4", "116", "nfs_stale", r"(?:nfs_statfs\w{0,4}: statfs error = |NFS: .*error = ?-?|nfs4?_\w{1,40}:"
     r" .*error = ?-?)116\b", None),
    ("NFS:|NFSv|nfs4", "", "nfs_error", r"(?:NFS|NFSv4|nfs4_\w{1,40}): (?:state manager|state recovery failed|"
     r".*(?:reclaim failed|lease expired failed|bad sequence-id)|.*?(?:for|on|NFSv4) server (?P<server>\S{1,100})"
     r" .*(?:failed|error))", None),
    ("CIFS", "has not responded", "cifs_not_responding", r"CIFS:? (?:VFS: )?(?:\\\\(?P<server2>[^\s\\]{1,100})"
     r"\S{0,100} )?"
     r"(?:[Ss]erver (?P<server>\S{1,100}) )?has not responded", None),
    ("Lust", "evicted", "lustre_lost", r"Lustre(?:Error)?: .*?(?:was evicted by (?P<target>[\w.-]{1,64})|Evicted from"
     r" (?P<target2>[\w.-]{1,64}))", {"evicted": True}),
    ("Lust", "Evicted", "lustre_lost", r"Lustre(?:Error)?: .*?Evicted from (?P<target>[\w.-]{1,64})",
     {"evicted": True}),
    ("Lust", "was lost", "lustre_lost", r"Lustre(?:Error)?: .*?Connection to (?:service )?(?P<target>[^\s;]{1,64})"
     r"(?: via nid [^\s;]{1,64})?(?: \(at (?P<server>[^)]{1,64})\))? was lost", None),
    ("Lust", "onnection restored", "lustre_restored", r"Lustre(?:Error)?: .*?Connection restored to (?:service )?"
     r"(?P<target>[\w.@-]{1,64})(?: \(at (?P<server>[^)]{1,64})\))?", None),
    ("Lust", "rc = ", None, r"Lustre(?:Error)?: .*(?:operation \S{1,40} to node|failed): .*rc = -(?:1|2|13|17|28|30|39|"
     r"61|122)\b", None),
    ("Lust", "operation ", "lustre_lost", r"Lustre(?:Error)?: .*?operation \S{1,40} to node (?P<node>\S{1,64}) failed:"
     r" rc = (?P<rc>-?\d{1,9})", None),
    ("Lust", "operation ", "lustre_lost", r"Lustre(?:Error)?: .*?Communicating with (?P<node>[^\s,]{1,64}), operation"
     r" \S{1,40} failed with (?P<rc>-?\d{1,9})", None),
    ("Lust", "@@@", "lustre_lost", r"Lustre(?:Error)?: .*?@@@ (?:Request .{0,160}?has|network error|"
     r"timeout)[^\[]{0,60}?"
     r"(?:due to network error|timed out|network error|timeout)(?:.{0,200}->(?P<target>[\w.-]{1,64}))?", None),
    ("Lust", "LBUG", "lustre_bug", r"Lustre(?:Error)?: .*" + _PLACE + r"LBUG\b", None),
    ("Lust", "ASSERTION", "lustre_bug", r"Lustre(?:Error)?: .*" + _PLACE + r"ASSERTION ?\(", None),
    ("LNet", "", "lustre_lost", r"LNet(?:Error)?: .*(?:Timed out (?:tx|rx|RDMA)|network error|RDMA timed out|"
     r"(?:ADDR|ROUTE) ERROR|UNREACHABLE|local interface .* down)", None),
    ("beeg", "", "beegfs_lost", r"beegfs: .*(?:Communication error|[Rr]eceive timeout|Connect failed|Retrying"
     r" communication|unreachable|Unable to connect|Marking .{1,60} offline)", None),
    ("beeg", "", "beegfs_ok", r"beegfs: .*(?:Connected: |Communication .{0,20}successful|reachable again|back online)",
     None),
    ("libc|ceph", "", "ceph_lost", r"(?:libceph|ceph): (?P<target>(?:mon|osd|mds)\d{1,6})\b.*(?:session lost|\bdown\b|"
     r"\bhung\b|caps stale|connect error|reconnect denied|rejected session|missed reconnect)", None),
    ("libc|ceph", "", "ceph_ok", r"(?:libceph|ceph): (?P<target>(?:mon|osd|mds)\d{1,6})\b.*(?:session established|"
     r"\bup\b|"
     r"recovery completed|reconnect success|caps renewed|came back)", None),
    ("mmfs|GPFS", "", "gpfs_lost", r"(?:mmfs\w{0,8}|GPFS): .*(?:Lost membership|MMFS_PHOENIX|expell?ed|panic|"
     r"unmount(?:ed)?"
     r" .*(?:forc|lost)|[Dd]eadlock detected|daemon (?:died|failed))", None),
    ("nvme", "Shutdown timeout set", None, r"nvme ", None),
    ("nvme", "Abort status", None, r"nvme \S{1,20} Abort status", None),
    ("nvme", "ailed", None, r"nvme \S{1,20} (?:Identify .{0,20}ailed|[Ff]ailed to (?:set|configure|allocate) (?:APST|"
     r"timestamp|host)|[Ff]ailed to (?:register|read|get) (?:effects|ANA|smart))", None),
    ("nvme", "I/O Error", "nvme", r"(?P<device>nvme\d{1,4}(?:c\d{1,4})?n\d{1,6}): .{0,160}I/O Error", {"what":
     "media"}),
    ("nvme", "", "nvme", r"nvme (?:(?P<bdf>" + BDF + r")|(?P<device>nvme\d{1,4})): .{0,200}?(?P<what>[Dd]isabling "
     r"device|"
     r"[Rr]emoving after|controller is down|timeout|timed out|[Dd]evice not ready|frozen state|failed state|"
     r"error recovery|Reconnecting in|reconnect attempt|keep.?alive|Failed status|failed|resetting controller|reset"
     r" controller)", None),
    ("bloc", "path", "nvme", r"block (?P<device>nvme\w{1,20}): no (?:available|usable) path", {"what": "path"}),
    (_DISKS, " error, dev ", None, r".{0,60} error, dev (?:fd|sr)\d", None),      # drives that hold no medium
    ("Buff", "I/O error on dev", None, r".{0,60} dev(?:ice)? (?:fd|sr)\d", None),
    ("Buff|lost|Asyn", "", "block_io", r"(?:Buffer I/O error on dev(?:ice)?|lost page write due to I/O error on|Async"
     r" page read failed on dev) (?P<device>[^\s,]{1,64})", {"what": "buffer"}),
    ("oper", "not supported error, dev", None, r".", None),
    (_DISKS, " error, dev ", "block_io", r"(?:(?:print_req_error|blk_update_request|end_request): )?(?P<what>[\w/ "
     r"-]{1,40}?)"
     r" error, dev (?P<device>[^\s,]{1,64}), (?:sector|logical block) (?P<sector>\d{1,20})", None),
    ("sd 0|sd 1|sd 2|sd 3|sd 4|sd 5|sd 6|sd 7|sd 8|sd 9", "FAILED Result", "block_io", r"sd [\d:]{1,24}: "
     r"\[(?P<device>\w{1,32})\] (?:tag#\d{1,6} )?.{0,30}FAILED Result: (?:hostbyte=(?P<what>\w{1,40}))?", None),
    ("sd 0|sd 1|sd 2|sd 3|sd 4|sd 5|sd 6|sd 7|sd 8|sd 9", "ffline", "block_io",
     r"sd (?P<device2>[\d:]{1,24}): (?:\[(?P<device>\w{1,32})\] )?(?:rejecting I/O to offline device|[Dd]evice "
     r"offlined)", {"what": "offline"}),
    ("ata1|ata2|ata3|ata4|ata5|ata6|ata7|ata8|ata9", "", "block_io", r"(?P<device>ata\d{1,3}(?:\.\d{1,3})?): (?:failed"
     r" command: (?P<what>[\w /-]{1,40})|disabled\b|exception Emask|reset failed, giving up)", None),
    ("md/r", "", "md_failed", r"md/raid\w{0,4}:(?P<device>\w{1,32}): (?:Disk failure on (?P<member>[\w-]{1,32})|"
     r"(?P<member2>[\w-]{1,32}): (?:unrecoverable I/O|.{0,40}rescheduling)|.{0,60}(?:not enough|Operation continuing on"
     " 0))", None),
    ("md: ", "super_written gets error", "md_failed", r"md: super_written gets error", None),
    ("devi", "Failing path", "path_failed",
     r"device-mapper: multipath: .{0,20}Failing path (?P<device>[\d:]{1,16})", None),
)

MEMORY = (
    ("mce:|[Har", "Machine check events logged", "mce_logged", _HW + "Machine check events logged", None),
    ("mce:|[Har|CPU ", "achine ", "mce_status", r"(?:mce: )?(?:\[Hardware Error\]: +)?CPU ?(?P<cpu>\d{1,5}): Machine "
     r"[Cc]heck"
     r"(?: Exception| Event)?: +[0-9a-fx]{1,16} +Bank (?P<bank>\d{1,3}): +(?P<status>[0-9a-f]{8,16})", None),
    ("mce:|[Har", "_STATUS[", "mce_status", _HW + r"CPU:?(?P<cpu>\d{1,5}) .{0,30}?MC(?P<bank>\d{1,3})"
     r"_STATUS\[[^\]]{0,80}\]:"
     r" 0x(?P<status>[0-9a-f]{8,16})", None),
    ("mce:|[Har", "Deferred error", "mce_deferred", _HW + r".{0,40}Deferred error", None),
    ("mce:|[Har", "orrected error, no action", "mce_corrected", _HW + r".{0,40}Corrected error, no action", None),
    ("mce:|[Har", "", "mce_uncorrected", _HW + r"(?:.{0,40}(?:Uncorrected,|Uncorrected error|System Fatal error|Fatal"
     r" machine check|Machine check: |PANIC)|.{0,80}Processor context corrupt)", None),
    ("mce:", "hardware memory error", "memory_failure", r"mce: Uncorrected hardware memory error in user-access at"
     r" (?P<page>[0-9a-f]{1,16})", None),
    ("{", "event severity: ", "mce_severity", r"\{\d{1,9}\}\[Hardware Error\]: +event severity: (?P<severity>\w{1,16})",
     None),
    ("[Har", "event severity: ", "mce_apei", r"\[Hardware Error\]: +event severity: (?P<severity>\w{1,16})",
     {"earlier_boot": True}),
    ("{", "section_type: ", "mce_apei", r"\{\d{1,9}\}\[Hardware Error\]: +section_type: (?P<section>[\w ]{1,40})",
     {"detail": True}),
    ("{", "device_id: ", "mce_apei", r"\{\d{1,9}\}\[Hardware Error\]: +device_id: (?P<device>" + BDF + ")",
     {"detail": True}),
    ("EDAC", "", "edac_corrected", r"EDAC \w{0,16} ?MC\d{1,3}: (?:(?P<count>\d{1,9}) CE .{0,200}?on "
     r"(?P<where>\S{1,64})|CE "
     r"(?:page 0x|row \d|ERROR|- no information)|internal CE)", None),
    ("EDAC", "", "edac_uncorrected", r"EDAC \w{0,16} ?MC\d{1,3}: (?:(?P<count>\d{1,9}) UE .{0,200}?on "
     r"(?P<where>\S{1,64})|"
     r"UE (?:page 0x|row \d|ERROR|- no information)|internal UE)", None),
    ("EDAC", "", "edac_corrected", r"EDAC DEVICE\d{1,3}: CE: (?P<where>.{1,60}?) instance", None),
    ("EDAC", "", "edac_uncorrected", r"EDAC DEVICE\d{1,3}: UE: (?P<where>.{1,60}?) instance", None),
    ("Memo|MCE ", "emory", "memory_failure", r"(?:Memory failure:|MCE) (?P<page>0x[0-9a-f]{1,16}): (?:Killing "
     r"(?P<process>.{1,40}?):(?P<pid>\d{1,10}) due to hardware memory corruption|recovery action|.{0,40}recovery)",
     None),
    ("mce:|CPU0|CPU1|CPU2|CPU3|CPU4|CPU5|CPU6|CPU7|CPU8|CPU9", "above threshold", "cpu_thermal", r"(?:mce: )?"
     r"CPU(?P<cpu>\d{1,5}): (?P<what>Core|Package) temperature (?:is )?above threshold", None),
    ("mce:|CPU0|CPU1|CPU2|CPU3|CPU4|CPU5|CPU6|CPU7|CPU8|CPU9", "speed normal", "cpu_thermal_ok", r"(?:mce: )?"
     r"CPU(?P<cpu>\d{1,5}): (?P<what>Core|Package) temperature/speed normal", None),
    ("NMI:", "NMI: ", "nmi", r"NMI: (?P<what>PCI system error \(SERR\)|IOCK error)(?: for | \()", None),
)

KERNEL = (
    ("Out |Memo|Kill", "ill", "oom_kill", r"(?:Out of memory(?: \([^)]{1,20}\))?: |Memory cgroup out of memory: )"
     r"?Kill(?:ed)? "
     r"process (?P<pid>\d{1,10}),? (?:UID \d{1,10}, )?\((?P<process>.{0,40}?)\)(?=,? (?:total-vm|UID|score|vsz|as a)|"
     r"\.?$)",
     None),
    ("Task", "killed as a result of limit of", "oom_kill", r"Task in (?P<memcg2>\S{1,200}) killed as a result of "
     r"limit of"
     r" (?P<memcg>\S{1,200})", {"invoked": True}),
    ("", "invoked oom-killer", "oom_kill", r"(?P<process>.{1,40}?) invoked oom-killer(?::|$)", {"invoked": True}),
    ("oom-", "constraint=", "oom_kill", r"oom-kill:constraint=CONSTRAINT_(?P<constraint>\w{1,20}),.{0,200}?"
     r"(?:oom_memcg=(?P<memcg>[^,]{1,200}),|global_oom,|)task_memcg=(?P<memcg2>[^,]{1,200}),task=(?P<process>.{0,40}?),"
     r"pid=(?P<pid>\d{1,10}),", {"invoked": True}),
    ("INFO", "blocked ", "hung_task", r"INFO: task (?P<process>.{1,40}):(?P<pid>\d{1,10}) blocked (?:in I/O wait )"
     r"?for more "
     r"than (?P<seconds>\d{1,9}) ?s", None),
    ("watc|NMI |BUG:", "soft lockup", "soft_lockup", r"(?:(?:NMI )?watchdog: )?BUG: soft lockup - "
     r"CPU#(?P<cpu>\d{1,5}) stuck"
     r" for (?P<seconds>\d{1,9})s!(?: \[(?P<process>.{0,40}):(?P<pid>\d{1,10})\])?", None),
    ("watc|NMI ", "hard LOCKUP", "hard_lockup", r"(?:NMI )?watchdog: (?:CPU\d{1,5}: )?Watchdog detected hard LOCKUP "
     r"on cpu"
     r" (?P<cpu>\d{1,5})", None),
    ("INFO|rcu:", "stall", "rcu_stall", r"(?:rcu: )?INFO: \w{1,40} (?:self-detected stall|detected (?:expedited )"
     r"?stalls?)",
     None),
    ("Kern", "", "kernel_panic", r"Kernel panic - not syncing: ?(?P<what>.{0,100})", None),
    ("BUG:|Unab|Oops|gene|kern|Inte|divi|inva", "", "kernel_oops", r"(?:(?P<what>BUG: unable to handle|BUG: kernel "
     r"NULL pointer|Unable to handle kernel|general protection fault)(?=[ :,])|(?P<what2>Oops|Internal error|"
     r"divide error|invalid opcode): .{0,200}\[#\d{1,9}\](?: |$)|(?P<what3>kernel BUG at) \S{1,200}:\d{1,6}!)", None),
)

NETWORK = (
    ("", "Link ", "link_flap", r"(?P<driver>[\w.-]{1,20}) (?P<bdf>" + BDF + r"):? (?P<device>[\w.-]{1,20}):? "
     r"(?:\w{1,20}: \S{1,20} )?(?:NIC |\d )?Link (?:is )?(?P<state>[Dd]own|[Uu]p|DOWN|UP|ACTIVE)" + _ENDS, None),
    ("", "Link is ", "link_flap", r"(?P<driver>igb|e1000e): (?P<device>[\w.-]{1,15}) NIC Link is (?P<state>[Dd]own|"
     r"[Uu]p)"
     + _ENDS, None),
    ("", "Link is ", "link_flap", r"(?P<device>[\w.-]{1,15}): (?:NIC )?Link is (?P<state>[Dd]own|[Uu]p)" + _ENDS, None),
    ("", "link status definitely ", "link_flap", r"(?:bonding: )?(?P<driver>[\w.-]{1,15}): (?:\(slave "
     r"(?P<device>[\w.-]{1,15})"
     r"\): )?link status definitely (?P<state>down|up)(?:,? for (?:active )?interface (?P<device2>[\w.-]{1,15}))?",
     None),
    ("", " link down", "link_flap", r"(?P<driver>cxgb4|qede|bnx2x) (?P<bdf>" + BDF + r")[: ]+(?P<device>[\w. "
     r"-]{1,20}):? link "
     r"(?P<state>down)", None),
    ("", "NETDEV WATCHDOG: ", "nic_error", r"(?P<driver>[\w.-]{1,20}) (?P<bdf>" + BDF + r") (?P<device>[\w.-]{1,20})"
     r": NETDEV"
     r" WATCHDOG: (?:CPU: \d{1,5}: )?transmit queue \d{1,5} timed out", None),
    ("NETD", "timed out", "nic_error", r"NETDEV WATCHDOG: (?:CPU: \d{1,5}: )?(?P<device>[\w.-]{1,20}) \((?P<driver>"
     r"[\w.-]{1,20})\): transmit queue \d{1,5} timed out", None),
    ("", "X timeout", "nic_error", r"(?P<driver>[\w.-]{1,20}) (?P<bdf>" + BDF + r"):? (?P<device>[\w.-]{1,20}): "
     r".{0,20}TX"
     r" timeout", None),
    ("", "Unit Hang", "nic_error", r"(?P<driver>[\w.-]{1,20}) (?P<bdf>" + BDF + r"):? (?P<device>[\w.-]{1,20}): "
     r".{0,20}Detected"
     r" (?:Tx|Hardware) Unit Hang", None),
    ("mlx5|infi", "", "mlx5", r"(?:infiniband )?mlx5_\w{1,40}(?: (?P<bdf>" + BDF + r"))?.*?(?P<what>insufficient power|"
     r"health compromised|[Ff]atal error|sensor|[Tt]emperature|Port module event\[error\]|[Cc]able error|ACCESS_REG|"
     r"dump"
     r" error cqe|[Ee]rror cqe|[Tt]imeout|health|recovery|fail|err\(|[Ee]rror)", None),
    ("mlx4", "", "nic_error", r"(?P<driver>mlx4_core) (?P<bdf>" + BDF + r"): (?:Internal error detected|device is "
     r"going to be"
     r" reset|.{0,40}command .{0,40}timed out)", None),
)

RULES = tuple(sorted(PCIE + STORAGE + MEMORY + KERNEL + NETWORK, key=lambda row: row[0] != ""))

# Of the lines whose first four characters say nothing: what stands behind "driver address", and substrings.
BEHIND_ADDRESS = (r"\.[0-7]:? (?:AER: |PCIe Bus E|DPC: c|pciehp: S|Refused t|Unable to ch|can't ch|probe with driver n|"
                  r"AMD-Vi: E|[\w. -]{1,24}:? (?:.{0,40}[Ll]ink (?:is )?(?:[Dd]own|[Uu]p|DOWN|UP|ACTIVE)|"
                  r".{0,24}(?:TX timeout|"
                  r"Unit Hang|NETDEV WATCH)))")
INSIDE = ("invoked oom-killer", "Link is ", "link status definitely ")
