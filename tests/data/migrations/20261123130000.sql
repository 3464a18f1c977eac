select ready, running from dalsegno.queue_load;
