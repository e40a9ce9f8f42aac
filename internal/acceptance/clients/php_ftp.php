<?php
// Does what a verb says with PHP's ftp functions. TestClients explains the verbs and the environment.

set_error_handler(function (int $level, string $text) { throw new ErrorException($text); });

function check($done, string $what)
{
    if ($done === false || $done === -1 || $done === FTP_FAILED) {
        throw new Exception($what);
    }
    return $done;
}

$connect = getenv('FTP_TLS') === 'explicit' ? 'ftp_ssl_connect' : 'ftp_connect';
$ftp = check($connect(getenv('FTP_HOST'), (int) getenv('FTP_PORT'), 60), 'connect');
check(ftp_login($ftp, getenv('FTP_USER'), getenv('FTP_PASSWORD')), 'login');
check(ftp_pasv($ftp, getenv('FTP_DATA') === 'passive'), 'pasv');

$verb = $argv[1];
$names = array_slice($argv, 2);
switch ($verb) {
    case 'list':
        $listed = array_map('basename', check(ftp_nlist($ftp, $names[0]), 'nlist'));
        $facts = array_filter(check(ftp_mlsd($ftp, $names[0]), 'mlsd'), fn ($e) => in_array($e['type'], ['file', 'dir']));
        if ($listed !== array_column($facts, 'name')) {
            throw new Exception('NLST and MLSD differ');
        }
        // League Flysystem lists so, and takes a failure for an empty directory (thephpleague/flysystem#1387).
        foreach (['-aln ', '-alnR '] as $options) {
            foreach ([$names[0], $names[0] . '/'] as $directory) {
                $lines = check(ftp_rawlist($ftp, $options . $directory), 'rawlist');
                if ($listed !== array_map(fn ($line) => preg_split('/\s+/', $line, 9)[8], $lines)) {
                    throw new Exception("NLST and LIST $options differ");
                }
            }
        }
        echo implode("\n", $listed), "\n";
        break;
    case 'upload':
    case 'abort':
        foreach (array_chunk($names, 2) as [$local, $remote]) {
            check(ftp_put($ftp, $remote, $local, FTP_BINARY), "put $remote");
        }
        break;
    case 'download':
        foreach (array_chunk($names, 2) as [$remote, $local]) {
            check(ftp_get($ftp, $local, $remote, FTP_BINARY), "get $remote");
        }
        break;
    case 'resume-upload':
        check(ftp_put($ftp, $names[1], $names[0], FTP_BINARY, FTP_AUTORESUME), 'put');
        break;
    case 'resume-download':
        check(ftp_get($ftp, $names[1], $names[0], FTP_BINARY, FTP_AUTORESUME), 'get');
        break;
    case 'get-time':
        check(ftp_get($ftp, $names[1], $names[0], FTP_BINARY), 'get');
        touch($names[1], check(ftp_mdtm($ftp, $names[0]), 'mdtm'));
        break;
    case 'rename':
        check(ftp_rename($ftp, $names[0], $names[1]), 'rename');
        break;
    case 'delete':
    case 'mkdir':
    case 'rmdir':
        foreach ($names as $name) {
            check("ftp_$verb"($ftp, $name), "$verb $name");
        }
        break;
    default:
        throw new Exception("no verb is called $verb");
}
ftp_close($ftp);
