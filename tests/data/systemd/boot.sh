#!/bin/bash
# Boots systemd with the files of this machine, which stay unchanged, and runs FOLDER/script as a service:
#
#     unshare --mount --pid --cgroup --uts --ipc --net --fork boot.sh FOLDER
#
# FOLDER/files is laid over the root. FOLDER/out/log gets the output of the script, and FOLDER/out/code its exit code.
set -e
folder=$1
mount --make-rprivate /
mkdir -p "$folder/layer" "$folder/root" "$folder/out"
mount -t tmpfs tmpfs "$folder/layer"
mkdir "$folder/layer/upper" "$folder/layer/work"
root=$folder/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/layer/upper,workdir=$folder/layer/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mkdir -p "$root/out"
mount --bind "$folder/out" "$root/out"
cp -r "$folder/files/." "$root/"
cp "$folder/script" "$root/script"
cat > "$root/etc/systemd/system/script.target" <<'UNIT'
[Unit]
Wants=script.service
UNIT
cat > "$root/etc/systemd/system/script.service" <<'UNIT'
[Unit]
DefaultDependencies=no
After=sysinit.target
[Service]
Type=oneshot
WorkingDirectory=/root
ExecStart=/bin/bash -c 'cd /root && bash -e /script; echo $? > /out/code'
StandardOutput=append:/out/log
StandardError=append:/out/log
ExecStopPost=/bin/systemctl exit 0
UNIT
# systemd moves the folders of credentials between its namespaces.
mount --make-rshared "$root"
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$root" /usr/lib/systemd/systemd --system --unit=script.target --show-status=no --log-target=null
