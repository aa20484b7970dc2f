-- What a worker or sink says of itself it says again every minute while it fires; its own end it cannot say.
CREATE OR REPLACE VIEW meta_alerts_latest AS
SELECT * REPLACE (
    if(
        status = 'firing' AND (startsWith(subject, 'worker ') OR startsWith(subject, 'sink '))
            AND ts < now64(9) - INTERVAL 5 MINUTE,
        'unheard',
        toString(status)
    ) AS status
)
FROM
(
    SELECT *
    FROM meta_alerts FINAL
    ORDER BY run_id, name, subject, ts DESC, status DESC
    LIMIT 1 BY run_id, name, subject
)
COMMENT 'What was last said of each: what fires now has the status firing, what its worker or sink has not said again for five minutes, so that it may be gone, unheard';
