"""Kinds of kernel-log events. Generated from kinds.yaml (2026-11-30) by catalogue/generate.py: do not edit."""

# kind: (title, severity, what to do, reason code or "", ((key of data, value, severity, what to do), ...))
KINDS = {
    'gpu_fell_off': (
        'a GPU is off the bus', 'fatal', 'reboot', 'GH-BUS-OFF', ()),
    'rm_init_failed': (
        'the driver could not initialise a GPU', 'fatal', 'reboot', 'GH-RM-INIT',
        (('reason', 'MSI', 'note', 'none'), ('reason', 'MSI-X', 'note', 'none'))),
    'gpu_probe_failed': (
        'the driver could not take over a GPU', 'warning', 'none', 'GH-RM-INIT', ()),
    'gpu_needs_reset': (
        'the driver says that a GPU likely needs to be reset', 'fatal', 'reset', 'GH-GPU-STUCK', ()),
    'uvm_fatal': (
        'the memory driver stopped for good and asks for a reboot', 'fatal', 'reboot', 'GH-UVM-FATAL', ()),
    'nvml_version_mismatch': (
        'a client of another driver version', 'warning', 'none', 'GH-NVML-MISM', ()),
    'driver_load': (
        'the driver was loaded', 'note', 'none', '', ()),
    'no_gpu_found': (
        'the driver found no GPU', 'warning', 'reboot', '', ()),
    'nvswitch_error': (
        'error of an NVSwitch without a number', 'warning', 'none', 'GH-NVSWITCH', ()),
    'pci_power_refused': (
        'a device does not change its power state', 'warning', 'none', 'GH-PCI-POWER', ()),
    'aer_corrected': (
        'PCIe error, corrected', 'note', 'none', 'GH-PCIE-CORR', ()),
    'aer_uncorrected': (
        'PCIe error, not corrected', 'warning', 'none', 'GH-PCIE-AER',
        (('class', 'Fatal', 'fatal', 'reboot'),)),
    'pcie_dpc': (
        'PCIe port switched off its link, to contain an error', 'fatal', 'reboot', 'GH-PCIE-AER', ()),
    'pcie_link_down': (
        'PCIe link went down', 'warning', 'none', 'GH-PCIE-AER', ()),
    'iommu_fault': (
        'a device asked for memory that is not its own', 'warning', 'none', 'GH-PCIE-IOMMU', ()),
    'fs_error': (
        'file system error', 'warning', 'repair', '',
        (('history', True, 'note', 'none'), ('full', True, 'note', 'none'), ('shutdown', True, 'fatal', 'repair'))),
    'fs_readonly': (
        'file system went read-only', 'fatal', 'repair', '', ()),
    'nfs_not_responding': (
        'NFS server does not answer', 'warning', 'none', '', ()),
    'nfs_ok': (
        'NFS server answers again', 'note', 'none', '', ()),
    'nfs_stale': (
        'stale NFS handle', 'warning', 'repair', '', ()),
    'nfs_error': (
        'NFS state could not be recovered', 'warning', 'none', '', ()),
    'cifs_not_responding': (
        'CIFS server does not answer', 'warning', 'none', '', ()),
    'lustre_lost': (
        'connection to a Lustre server lost', 'warning', 'none', '', ()),
    'lustre_restored': (
        'connection to a Lustre server is back', 'note', 'none', '', ()),
    'lustre_bug': (
        'Lustre client stopped at a bug', 'fatal', 'reboot', '', ()),
    'beegfs_lost': (
        'connection to a BeeGFS server lost', 'warning', 'none', '', ()),
    'beegfs_ok': (
        'connection to a BeeGFS server is back', 'note', 'none', '', ()),
    'ceph_lost': (
        'connection to a Ceph server lost', 'warning', 'none', '', ()),
    'ceph_ok': (
        'connection to a Ceph server is back', 'note', 'none', '', ()),
    'gpfs_lost': (
        'connection to a GPFS server lost', 'warning', 'none', '', ()),
    'nvme': (
        'NVMe error', 'warning', 'repair', '', ()),
    'block_io': (
        'disk I/O error', 'warning', 'repair', '', ()),
    'md_failed': (
        'a disk of an array failed', 'warning', 'repair', '', ()),
    'path_failed': (
        'one path to a disk failed', 'warning', 'repair', '', ()),
    'mce_corrected': (
        'machine check, corrected', 'note', 'none', '', ()),
    'mce_deferred': (
        'machine check, bad data not used yet', 'warning', 'none', '', ()),
    'mce_uncorrected': (
        'machine check, not corrected', 'fatal', 'repair', '', ()),
    'mce_logged': (
        'machine checks were logged', 'note', 'none', '', ()),
    'mce_apei': (
        'hardware error from the firmware', 'warning', 'none', '',
        (('severity', 'fatal', 'fatal', 'repair'), ('severity', 'corrected', 'note', 'none'),
         ('severity', 'info', 'note', 'none'))),
    'edac_corrected': (
        'host memory error, corrected', 'note', 'none', '', ()),
    'edac_uncorrected': (
        'host memory error, not corrected', 'fatal', 'repair', '', ()),
    'memory_failure': (
        'a page of host memory is broken', 'fatal', 'repair', '', ()),
    'cpu_thermal': (
        'processor throttled by heat', 'warning', 'none', '', ()),
    'cpu_thermal_ok': (
        'processor cooled down again', 'note', 'none', '', ()),
    'oom_kill': (
        'a process was killed for memory', 'note', 'restart-app', '', ()),
    'hung_task': (
        'a process hangs in the kernel', 'warning', 'none', '', ()),
    'soft_lockup': (
        'a processor is stuck in the kernel', 'warning', 'none', '', ()),
    'hard_lockup': (
        'a processor no longer takes interrupts', 'fatal', 'reboot', '', ()),
    'rcu_stall': (
        'a processor holds up the kernel', 'warning', 'none', '', ()),
    'kernel_oops': (
        'kernel bug', 'warning', 'reboot', '', ()),
    'kernel_panic': (
        'kernel panic', 'fatal', 'reboot', '', ()),
    'nmi': (
        'non-maskable interrupt', 'warning', 'none', '', ()),
    'link_flap': (
        'a network port went up or down', 'warning', 'none', '', ()),
    'mlx5': (
        'event of a Mellanox adapter', 'warning', 'none', '', ()),
    'nic_error': (
        'error of a network adapter', 'warning', 'none', '', ()),
}
