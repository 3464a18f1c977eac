update dalsegno.turns set history_check = 'seen' where state = 'done';
