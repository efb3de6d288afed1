"""Steps of migrations that cost the same whatever the size of a table."""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class AddColumn(migrations.AddField):
    """Adds a column that the database itself gives a constant default.

    Versions of before, which run on until they are replaced, insert rows without it. It reads and
    writes no row: for a column that is not nullable Django copies the whole table on SQLite,
    although `ALTER TABLE ADD COLUMN` takes one with a constant default.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        to_model: Any = to_state.apps.get_model(app_label, self.model_name)
        field = to_model._meta.get_field(self.name)
        if not field.null and not field.has_db_default():
            raise ValueError(f"{self.model_name}.{self.name} needs db_default")
        if schema_editor.connection.vendor != "sqlite":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        elif self.allow_migrate_model(schema_editor.connection.alias, to_model):
            from_model: Any = from_state.apps.get_model(app_label, self.model_name)
            BaseDatabaseSchemaEditor.add_field(schema_editor, from_model, field)
