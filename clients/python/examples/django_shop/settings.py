import os

SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "for trials only")
INSTALLED_APPS = ["orders"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
CAMPAIGN = os.environ["CAMPAIGN"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PGHOST"),
        "NAME": os.environ.get("PGDATABASE", "dalsegno"),
        "USER": os.environ.get("PGUSER", "dalsegno"),
        "PASSWORD": os.environ.get("PGPASSWORD", ""),
    }
}
