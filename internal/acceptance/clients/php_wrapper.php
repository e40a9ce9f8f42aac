<?php
// Does what a verb says with PHP's wrapper for ftp:// and ftps:// URLs. TestClients explains the verbs and the environment.

set_error_handler(function (int $level, string $text) { throw new ErrorException($text); });

// The wrapper sends the path as it is.
function url(string $path): string
{
    $host = getenv('FTP_HOST');
    $host = str_contains($host, ':') ? "[$host]" : $host;
    $login = rawurlencode(getenv('FTP_USER')) . ':' . rawurlencode(getenv('FTP_PASSWORD'));
    return (getenv('FTP_TLS') === 'plain' ? 'ftp' : 'ftps') . "://$login@$host:" . getenv('FTP_PORT') . $path;
}

$methods = ['1.2' => STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT, '1.3' => STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT];
$ssl = ['cafile' => getenv('FTP_CA')];
if (getenv('FTP_TLS_VERSION')) {
    $ssl['crypto_method'] = $methods[getenv('FTP_TLS_VERSION')];
}
stream_context_set_default(['ssl' => $ssl]);
$overwrite = stream_context_create(['ftp' => ['overwrite' => true], 'ssl' => $ssl]);

$verb = $argv[1];
$names = array_slice($argv, 2);
switch ($verb) {
    case 'list':
        echo implode("\n", scandir(url($names[0]))), "\n";
        break;
    case 'upload':
    case 'abort':
        foreach (array_chunk($names, 2) as [$local, $remote]) {
            copy($local, url($remote), $overwrite);
        }
        break;
    case 'download':
        foreach (array_chunk($names, 2) as [$remote, $local]) {
            copy(url($remote), $local);
        }
        break;
    case 'resume-upload':
        $remote = url($names[1]);
        $source = fopen($names[0], 'rb');
        fseek($source, filesize($remote));
        $target = fopen($remote, 'ab');
        stream_copy_to_stream($source, $target);
        fclose($target);
        break;
    case 'resume-download':
        $size = filesize($names[1]);
        $context = stream_context_create(['ftp' => ['resume_pos' => $size], 'ssl' => $ssl]);
        $source = fopen(url($names[0]), 'rb', false, $context);
        stream_copy_to_stream($source, fopen($names[1], 'ab'));
        fclose($source);
        break;
    case 'get-time':
        copy(url($names[0]), $names[1]);
        touch($names[1], filemtime(url($names[0])));
        break;
    case 'rename':
        rename(url($names[0]), url($names[1]));
        break;
    case 'delete':
        array_map(fn ($name) => unlink(url($name)), $names);
        break;
    case 'mkdir':
        array_map(fn ($name) => mkdir(url($name)), $names);
        break;
    case 'rmdir':
        array_map(fn ($name) => rmdir(url($name)), $names);
        break;
    default:
        throw new Exception("no verb is called $verb");
}
