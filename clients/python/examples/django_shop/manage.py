"""A shop with Django, whose command adds an order and its task in one transaction.

    pip install django "psycopg[binary]"
    python manage.py migrate
    python manage.py order "Write part one." --wait

CAMPAIGN is the id of the campaign; PGHOST ... name the database of the service; DALSEGNO_URL and DALSEGNO_API_KEY are read by
the client.
"""

import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
execute_from_command_line(sys.argv)
