package stored

import "golang.org/x/sys/windows"

// roomOf returns how many bytes the user may still store on the volume of a directory,
// and the total size of the volume.
func roomOf(dir string) (free, total int64, err error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var mine, all uint64
	if err := windows.GetDiskFreeSpaceEx(path, &mine, &all, nil); err != nil {
		return 0, 0, err
	}
	return int64(mine), int64(all), nil
}
