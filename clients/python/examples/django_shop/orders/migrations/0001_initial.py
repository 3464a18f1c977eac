from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(primary_key=True)),
                ("what", models.TextField()),
                ("task_id", models.UUIDField(null=True)),
                ("result", models.TextField(null=True)),
            ],
        )
    ]
