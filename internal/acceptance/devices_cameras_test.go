package acceptance_test

// cameras are network cameras.
var cameras = []device{
	// It checks for a marker with size in lower case, and quits when ALLO gets 202:
	// https://github.com/alienatedsec/yi-hack-v5/issues/337, https://github.com/hassio-addons/app-ftp/issues/245. The
	// pathname is from https://github.com/blakejarvis/homeassistant-video-viewer, with brackets as in Dahua's
	// pictures.
	{
		name: "Dahua, Amcrest",
		has:  map[string]string{"gate/": ""},
		script: `
			331 USER DEVICE
			230 PASS SECRET
			250 CWD /
			257 PWD
			250 CWD /gate
			200 TYPE I
			257 PWD
			250 CWD /
			250 CWD /
			257 PWD
			550 size /gate/DVRWorkDirectory
			227 PASV
			226 STOR /gate/DVRWorkDirectory <<< 1
			213 size /gate/DVRWorkDirectory
			550 CWD /gate/2025-05-22
			257 MKD /gate/2025-05-22
			257 MKD /gate/2025-05-22/001
			550 MKD /gate/2025-05-22/001
			250 CWD /gate/2025-05-22/001
			200 ALLO 4
			227 PASV
			226 STOR 07.39[M][0@0][0].jpg <<< JPEG
			227 PASV
			226 STOR 07.39[M][0@0][0].jpg <<< JPEG2
			221 QUIT`,
		want: map[string]string{
			"gate/": "", "gate/DVRWorkDirectory": "1", "gate/2025-05-22/": "", "gate/2025-05-22/001/": "",
			"gate/2025-05-22/001/07.39[M][0@0][0].jpg": "JPEG2",
		},
	},
	// https://github.com/svrooij/ipcam2mqtt/issues/14, https://github.com/fclairamb/ftpserverlib/issues/451
	{
		name: "Reolink",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			550 CWD //camera_test20190222080904
			550 CWD camera_test20190222080904
			257 MKD camera_test20190222080904
			250 CWD camera_test20190222080904
			200 TYPE I
			200 MODE S
			200 STRU F
			227 PASV
			226 STOR gate_01_20190222080904.jpg <<< JPEG
			221 QUIT`,
		want: map[string]string{"camera_test20190222080904/": "",
			"camera_test20190222080904/gate_01_20190222080904.jpg": "JPEG"},
	},
	// https://github.com/biddster/node-red-contrib-ftp-server/issues/4
	{
		name: "Cameras with XMKD",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			550 CWD /20171007/images/
			257 XMKD /20171007
			257 XMKD /20171007/images
			250 CWD /20171007/images/
			200 TYPE I
			227 PASV
			226 STOR 011012.jpg <<< JPEG
			221 QUIT`,
		want: map[string]string{"20171007/": "", "20171007/images/": "", "20171007/images/011012.jpg": "JPEG"},
	},
	// The firmware's script sends a whole session at once, with lowercase commands; BusyBox's
	// ftpput uploads: https://github.com/roleoroleo/yi-hack-Allwinner-v2/issues/101,
	// https://github.com/roleoroleo/yi-hack-Allwinner/issues/180
	{
		name: "Yi with yi-hack",
		script: `
			+ USER DEVICE
			+ PASS SECRET
			+ mkd 2023Y07M06D13H
			+ quit
			331
			230
			257
			221
			connect
			331 user DEVICE
			230 pass SECRET
			200 type I
			229 epsv
			226 stor 2023Y07M06D13H/E201M57S03.mp4 <<< MP4
			221 quit
			connect
			+ USER DEVICE
			+ PASS SECRET
			+ mkd 2023Y07M06D13H
			+ quit
			331
			230
			550
			221`,
		want: map[string]string{"2023Y07M06D13H/": "", "2023Y07M06D13H/E201M57S03.mp4": "MP4"},
	},
	// The manual explains both ways:
	// https://www.manualshelf.com/manual/intellinet/fixed-cameras/user-manual-english/page-90.html
	{
		name: "Intellinet",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			200 TYPE I
			550 DELE camera.jpg
			227 PASV
			226 STOR camera.jpg <<< first
			227 PASV
			226 STOR camera_tmp.jpg <<< second
			250 DELE camera.jpg
			350 RNFR camera_tmp.jpg
			250 RNTO camera.jpg
			221 QUIT`,
		want: map[string]string{"camera.jpg": "second"},
	},
	// Their manuals have backslashes in pathnames:
	// https://manualshive.com/en/manual/acti/a1d-220-v3-14-19-ac/2842786?page=54,
	// http://hs-help.net/hshelp/gira/v4_9/en/camftp.html
	{
		name: "ACTi, Gira", settings: "compatibility: {backslash: separator}",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			550 CWD \Backgate0522\
			257 MKD \Backgate0522
			250 CWD \Backgate0522\
			200 TYPE I
			227 PASV
			226 STOR Front_Door_2025.jpg <<< JPEG
			227 PASV
			226 STOR \cam01\142\picture7.jpg <<< JPEG
			221 QUIT`,
		want: map[string]string{"Backgate0522/": "", "Backgate0522/Front_Door_2025.jpg": "JPEG",
			"cam01/142/picture7.jpg": "JPEG"},
	},
	// Its firmware sends an empty CWD where no directory is configured, and QUIT before it reads 226:
	// https://github.com/s60sc/ESP32-CAM_MJPEG2SD (ftp.cpp), https://github.com/s60sc/ESP32-CAM_MJPEG2SD/issues/167
	{
		name: "ESP32-CAM",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			215 SYST
			200 Type I
			227 PASV
			250 CWD EMPTY
			550 CWD 20230204
			257 MKD 20230204
			250 CWD 20230204
			150 STOR 20230204_144234.avi <<< AVI
			close
			226 QUIT
			221`,
		want: map[string]string{"20230204/": "", "20230204/20230204_144234.avi": "AVI"},
	},
	// Its source opens the data connection early, and sends other commands before the transfer:
	// https://github.com/ldab/ESP32_FTPClient
	{
		name: "ESP32_FTPClient",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			215 SYST
			200 Type A
			227 PASV
			257 MKD my_new_dir
			250 CWD my_new_dir
			226 MLSD >>> type=cdir
			200 Type A
			227 PASV
			200 Type I
			227 PASV
			226 STOR octocat.jpg <<< JPEG
			200 Type A
			227 PASV
			226 STOR hello.txt <<< one\r\n
			200 Type A
			227 PASV
			226 APPE hello.txt <<< two\r\n
			350 RNFR hello.txt
			250 RNTO test.txt
			+ QUIT
			221`,
		want: map[string]string{"my_new_dir/": "", "my_new_dir/octocat.jpg": "JPEG",
			"my_new_dir/test.txt": "one\ntwo\n"},
	},
}
