# Does what a verb says with Ruby's Net::FTP. TestClients explains the verbs and the environment.

require "net/ftp"

tls, version = ENV.values_at("FTP_TLS", "FTP_TLS_VERSION")
options = {port: Integer(ENV["FTP_PORT"]), passive: ENV["FTP_DATA"] == "passive", read_timeout: 60}
if tls != "plain"
  options[:ssl] = {ca_file: ENV["FTP_CA"]}
  options[:implicit_ftps] = tls == "implicit"
end
unless version.to_s.empty?
  version = {"1.2" => OpenSSL::SSL::TLS1_2_VERSION, "1.3" => OpenSSL::SSL::TLS1_3_VERSION}.fetch(version)
  options[:ssl].update(min_version: version, max_version: version)
end
ftp = Net::FTP.new(ENV["FTP_HOST"], **options)
ftp.login(ENV["FTP_USER"], ENV["FTP_PASSWORD"])

verb, *names = ARGV
case verb
when "list"
  listed = ftp.nlst(names[0]).map { |name| File.basename(name) }
  raise "NLST and MLSD differ" if listed != ftp.mlsd(names[0]).select { |e| e.file? || e.type == "dir" }.map(&:pathname)
  puts listed
when "upload", "abort"
  names.each_slice(2) { |local, remote| ftp.putbinaryfile(local, remote) }
when "download"
  names.each_slice(2) { |remote, local| ftp.getbinaryfile(remote, local) }
when "resume-upload"
  ftp.resume = true
  ftp.putbinaryfile(*names)
when "resume-download"
  ftp.resume = true
  ftp.getbinaryfile(*names)
when "upload-text"
  names.each_slice(2) { |local, remote| ftp.puttextfile(local, remote) }
when "download-text"
  names.each_slice(2) { |remote, local| ftp.gettextfile(remote, local) }
when "get-time"
  remote, local = names
  ftp.getbinaryfile(remote, local)
  time = ftp.mtime(remote)
  File.utime(time, time, local)
when "rename"
  ftp.rename(*names)
when "delete"
  names.each { |name| ftp.delete(name) }
when "mkdir"
  names.each { |name| ftp.mkdir(name) }
when "rmdir"
  names.each { |name| ftp.rmdir(name) }
else
  raise "no verb is called #{verb}"
end
ftp.quit
