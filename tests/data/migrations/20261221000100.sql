select dalsegno.end_snooze(0);
