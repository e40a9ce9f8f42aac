package driver

import (
	"path"
	"strings"
)

// unknownType is the media type of what could be anything (RFC 2046 section 4.5.1).
const unknownType = "application/octet-stream"

// contentType tells the media type from the end of a name, wherever the server runs: package mime would ask files of the operating
// system. It says nothing of a charset, which the name does not tell.
func (o *Objects) contentType(name string) string {
	ending := strings.ToLower(path.Ext(name))
	if mediaType, ok := o.ContentTypes[ending]; ok {
		return mediaType
	}
	return mediaTypeOf(ending)
}

// mediaTypeOf knows the endings that people send most. The types are those of IANA, https://www.iana.org/assignments/media-types, and
// where it has none those in use.
func mediaTypeOf(ending string) string {
	switch ending {
	case ".atom":
		return "application/atom+xml"
	case ".cbor":
		return "application/cbor"
	case ".dcm", ".dicom":
		return "application/dicom"
	case ".epub":
		return "application/epub+zip"
	case ".geojson":
		return "application/geo+json"
	case ".gml":
		return "application/gml+xml"
	case ".gpx":
		return "application/gpx+xml"
	case ".gz", ".tgz":
		return "application/gzip"
	case ".jar", ".war":
		return "application/java-archive"
	case ".json":
		return "application/json"
	case ".jsonl":
		return "application/jsonl"
	case ".jsonld":
		return "application/ld+json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".doc", ".dot":
		return "application/msword"
	case ".mxf":
		return "application/mxf"
	case ".xps":
		return "application/oxps"
	case ".pdf":
		return "application/pdf"
	case ".pgp":
		return "application/pgp-encrypted"
	case ".p12", ".pfx":
		return "application/pkcs12"
	case ".p7m":
		return "application/pkcs7-mime"
	case ".p7s":
		return "application/pkcs7-signature"
	case ".cer", ".crt":
		return "application/pkix-cert"
	case ".ai", ".eps", ".ps":
		return "application/postscript"
	case ".rss":
		return "application/rss+xml"
	case ".rtf":
		return "application/rtf"
	case ".sql":
		return "application/sql"
	case ".toml":
		return "application/toml"
	case ".swf":
		return "application/vnd.adobe.flash.movie"
	case ".azw":
		return "application/vnd.amazon.ebook"
	case ".apk":
		return "application/vnd.android.package-archive"
	case ".parquet":
		return "application/vnd.apache.parquet"
	case ".m3u8":
		return "application/vnd.apple.mpegurl"
	case ".numbers":
		return "application/vnd.apple.numbers"
	case ".pages":
		return "application/vnd.apple.pages"
	case ".deb":
		return "application/vnd.debian.binary-package"
	case ".kml":
		return "application/vnd.google-earth.kml+xml"
	case ".kmz":
		return "application/vnd.google-earth.kmz"
	case ".xls", ".xlt":
		return "application/vnd.ms-excel"
	case ".xlsb":
		return "application/vnd.ms-excel.sheet.binary.macroenabled.12"
	case ".xlsm":
		return "application/vnd.ms-excel.sheet.macroenabled.12"
	case ".eot":
		return "application/vnd.ms-fontobject"
	case ".msg":
		return "application/vnd.ms-outlook"
	case ".pot", ".pps", ".ppt":
		return "application/vnd.ms-powerpoint"
	case ".mpp":
		return "application/vnd.ms-project"
	case ".vsdx":
		return "application/vnd.ms-visio.viewer"
	case ".docm":
		return "application/vnd.ms-word.document.macroenabled.12"
	case ".wps":
		return "application/vnd.ms-works"
	case ".odg":
		return "application/vnd.oasis.opendocument.graphics"
	case ".odp":
		return "application/vnd.oasis.opendocument.presentation"
	case ".ods":
		return "application/vnd.oasis.opendocument.spreadsheet"
	case ".odt":
		return "application/vnd.oasis.opendocument.text"
	case ".pptx":
		return "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	case ".ppsx":
		return "application/vnd.openxmlformats-officedocument.presentationml.slideshow"
	case ".xlsx":
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	case ".xltx":
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.template"
	case ".docx":
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	case ".dotx":
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.template"
	case ".rar":
		return "application/vnd.rar"
	case ".sqlite":
		return "application/vnd.sqlite3"
	case ".pcap":
		return "application/vnd.tcpdump.pcap"
	case ".vsd":
		return "application/vnd.visio"
	case ".wasm":
		return "application/wasm"
	case ".7z":
		return "application/x-7z-compressed"
	case ".bz2":
		return "application/x-bzip2"
	case ".mobi":
		return "application/x-mobipocket-ebook"
	case ".ndjson":
		return "application/x-ndjson"
	case ".pem":
		return "application/x-pem-file"
	case ".rpm":
		return "application/x-rpm"
	case ".ifc":
		return "application/x-step"
	case ".tar":
		return "application/x-tar"
	case ".xz":
		return "application/x-xz"
	case ".xhtml":
		return "application/xhtml+xml"
	case ".xml", ".xsd", ".xsl":
		return "application/xml"
	case ".dtd":
		return "application/xml-dtd"
	case ".xslt":
		return "application/xslt+xml"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".zip":
		return "application/zip"
	case ".zst":
		return "application/zstd"
	case ".aac":
		return "audio/aac"
	case ".aif", ".aiff":
		return "audio/aiff"
	case ".flac":
		return "audio/flac"
	case ".mid", ".midi":
		return "audio/midi"
	case ".m4a":
		return "audio/mp4"
	case ".mp3":
		return "audio/mpeg"
	case ".oga", ".ogg", ".opus":
		return "audio/ogg"
	case ".wav":
		return "audio/wav"
	case ".weba":
		return "audio/webm"
	case ".wma":
		return "audio/x-ms-wma"
	case ".otf":
		return "font/otf"
	case ".ttf":
		return "font/ttf"
	case ".woff":
		return "font/woff"
	case ".woff2":
		return "font/woff2"
	case ".avif":
		return "image/avif"
	case ".bmp":
		return "image/bmp"
	case ".emf":
		return "image/emf"
	case ".gif":
		return "image/gif"
	case ".heic":
		return "image/heic"
	case ".heif":
		return "image/heif"
	case ".jp2":
		return "image/jp2"
	case ".jfif", ".jpe", ".jpeg", ".jpg":
		return "image/jpeg"
	case ".jxl":
		return "image/jxl"
	case ".png":
		return "image/png"
	case ".svg", ".svgz":
		return "image/svg+xml"
	case ".tif", ".tiff":
		return "image/tiff"
	case ".psd":
		return "image/vnd.adobe.photoshop"
	case ".dwg":
		return "image/vnd.dwg"
	case ".dxf":
		return "image/vnd.dxf"
	case ".ico":
		return "image/vnd.microsoft.icon"
	case ".webp":
		return "image/webp"
	case ".wmf":
		return "image/wmf"
	case ".eml":
		return "message/rfc822"
	case ".gltf":
		return "model/gltf+json"
	case ".glb":
		return "model/gltf-binary"
	case ".step", ".stp":
		return "model/step"
	case ".stl":
		return "model/stl"
	case ".dwf":
		return "model/vnd.dwf"
	case ".ics":
		return "text/calendar"
	case ".css":
		return "text/css"
	case ".csv":
		return "text/csv"
	case ".htm", ".html":
		return "text/html"
	case ".js", ".mjs":
		return "text/javascript"
	case ".md":
		return "text/markdown"
	case ".log", ".text", ".txt":
		return "text/plain"
	case ".tsv":
		return "text/tab-separated-values"
	case ".vcf":
		return "text/vcard"
	case ".vtt":
		return "text/vtt"
	case ".mkv":
		return "video/matroska"
	case ".m2ts", ".mts", ".ts":
		return "video/mp2t"
	case ".m4v", ".mp4":
		return "video/mp4"
	case ".mpeg", ".mpg":
		return "video/mpeg"
	case ".ogv":
		return "video/ogg"
	case ".mov":
		return "video/quicktime"
	case ".webm":
		return "video/webm"
	case ".flv":
		return "video/x-flv"
	case ".wmv":
		return "video/x-ms-wmv"
	case ".avi":
		return "video/x-msvideo"
	}
	return unknownType
}
