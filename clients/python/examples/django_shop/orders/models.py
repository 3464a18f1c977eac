from django.db import models


class Order(models.Model):
    what = models.TextField()
    task_id = models.UUIDField(null=True)
    result = models.TextField(null=True)
