"""ClickHouse rows, batches, migrations and views."""
