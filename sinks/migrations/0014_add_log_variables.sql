-- The variables of log records, found when they are asked for: stored, they would cost more than all the rest of a row.
-- The expressions are those of the masks without what this engine's regular expressions lack (looking behind).
ALTER TABLE logs
    ADD COLUMN IF NOT EXISTS variables Array(String) ALIAS if(notEmpty(parameters), parameters,
        arrayMap(said -> substringUTF8(replaceRegexpOne(said, '^[:=] ', ''), 1, 64),
            arraySlice(
                extractAll(
                    replaceRegexpOne(
                        substringUTF8(
                            if(position(text, 'Traceback (most recent call last):') > 0,
                                arrayLast(line -> match(line, '^[A-Za-z_][\\w.]*(?::|$)'), splitByChar('\n', text)),
                                splitByChar('\n', text)[1]),
                            1, 4096),
                        '^[ \\t]*(?:(?:\\[rank ?\\d{1,7}\\]:?|\\[[A-Za-z_]{1,32}\\d{1,7}\\]:|\\[\\w{1,40} rank \\d{1,7}\\]|\\[?\\d{1,4}-\\d{1,2}-\\d{1,2}[ T_]\\d{1,2}:\\d{1,2}:\\d{1,2}(?:[.,]\\d{1,9})?Z?\\]?|\\[?[VIWEFC]\\d{1,4} \\d{1,2}:\\d{1,2}:\\d{1,2}\\.\\d{1,9}(?: \\d{1,9})?|\\[(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\\]|- (?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL) -|(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL):?[ ])[ \\t]*)+',
                        ''),
                    '\\b\\d+-\\d+-\\d+[ T_]\\d+[:,]\\d+[:,]\\d+(?:[.,]\\d+)?Z?|\\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {1,2})?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\\d+ (?:\\d+ )?\\d+:\\d+:\\d+(?:\\.\\d+)?(?: [A-Z]{3,4})?(?: \\d+)?\\b|\\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\\b|\\b[0-9a-fA-F]{1,8}:[0-9a-fA-F]{0,4}:[0-9a-fA-F:]{0,30}[0-9a-fA-F](?:\\.\\d+)?\\b|(?:\\[::(?:ffff:)?)?\\b\\d+\\.\\d+\\.\\d+\\.\\d+\\b\\]?(?::\\d+)?|\\b(?:https?|s3|gs|hdfs|file)://[^\\s"\'<>]+|\\b[A-Za-z0-9][A-Za-z0-9.-]{0,250}\\.(?:com|org|edu|gov|mil)(?:\\.[a-z]{2})?(?::\\d+)?\\b|\\b[A-Za-z0-9][A-Za-z0-9-]{0,63}\\.[A-Za-z0-9.-]{1,250}\\.(?:net|local|localdomain|internal|lan|svc|arpa|cn|uk|de|fr|jp|kr|tw|hk|mx|br|eu|ru|nl|pl|ca|au|ch|se|io|ai)(?::\\d+)?\\b|\\B(?:\\.{1,2}|~)?/(?:[\\w.+@=%~-]+/*)+(?:\\?[^\\s"\'<>]+)?|\\b0[xX][0-9a-fA-F]+\\b|<?\\b\\d+(?:\\.\\d+)? ?(?:ns|us|ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)\\b|\\b\\d+(?:\\.\\d+)?(?: ?(?:[KMGTP]i?B|B|bytes?)|[KMGT])\\b(?: \\(\\d+(?:\\.\\d+)? ?(?:[KMGTP]i?B|B|bytes?)\\))?|(?:\\B[+-])?\\b\\d+\\.\\d+(?:[eE][+-]?\\d+)?|\\b[0-9a-f]{8,64}\\b|(?:\\B[+-])?\\b\\d+(?:[eE][+-]?\\d+)?|\\d+|[:=] (?i:nan|[+-]?inf)\\b'),
                1, 32))) COMMENT 'Variables of the line, or of the error that a traceback ends with, in order, much as the masks take them out: at most 32 of 64 characters' AFTER parameters;
