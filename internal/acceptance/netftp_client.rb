# Uploads files with Ruby's Net::FTP under explicit TLS, and downloads each to a file named like it with ".back" behind.
#
# usage: PORT CERTIFICATES TLS-VERSION USER PASSWORD [LOCAL REMOTE]...

require "net/ftp"

port, certificates, version, user, password, *files = ARGV
version = {"1.2" => OpenSSL::SSL::TLS1_2_VERSION, "1.3" => OpenSSL::SSL::TLS1_3_VERSION}.fetch(version)
tls = {ca_file: certificates, min_version: version, max_version: version}
ftp = Net::FTP.new("127.0.0.1", port: Integer(port), username: user, password: password, passive: true, ssl: tls)
files.each_slice(2) do |local, remote|
  ftp.putbinaryfile(local, remote)
  ftp.getbinaryfile(remote, local + ".back")
end
ftp.quit
