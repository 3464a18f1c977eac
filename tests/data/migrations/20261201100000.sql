update dalsegno.compactions set prompts = '{
  "kept": [{"seq": 1, "text": "Write part one, in British spelling."}],
  "sentences": [{"seq": 0, "text": "No emojis, please.", "strength": "rule"}],
  "archived": 3}' where generation = 1;
